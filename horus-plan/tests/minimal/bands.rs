//! Plans for one device, in up to three bands.
