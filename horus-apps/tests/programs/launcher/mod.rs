//! Jobs under `mpirun`.

use std::process::Command;

/// `mpirun` without arguments: one thread per rank, without settings from the environment. `MPIRUN`
/// names another launcher.
pub(crate) fn mpirun() -> Command {
    let launcher = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let mut launcher = launcher.split_whitespace();
    let mut command = Command::new(launcher.next().unwrap());
    for name in ["HORUS_MODE", "HORUS_DEVICE", "HORUS_WEIGHTS"] {
        command.env_remove(name);
    }
    // Containers run as root, which Open MPI requires to be confirmed twice.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").env("HORUS_THREADS", "1");
    // Allow more ranks than cores, for Open MPI 4 and 5.
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command.args(launcher);
    command
}
