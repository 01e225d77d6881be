//! Line detectors.
