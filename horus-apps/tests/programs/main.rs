//! The programs: the detectors, the command `horus`, series of files, alone and under `mpirun`.

mod cli;
mod command;
mod command_mpirun;
mod detectors;
mod ends;
mod files;
mod large;
mod launcher;
mod mpirun;
mod promise;
mod series;
mod series_mpirun;
