/* ranks_launcher.c -- environment variables of mpirun and srun. */
#include <stdlib.h>

#include "ranks/ranks_private.h"

/* 0: missing, or not a number. */
static int number_in(const char *variable) {
    const char *text = getenv(variable);
    const int number = text ? atoi(text) : 0;
    return number > 0 ? number : 0;
}

/* MPICH's mpirun sets the same variables as srun --mpi=pmi2, which also gives the number of tasks.
 * An srun step may contain an mpirun. The first launcher with several processes counts. */
int ranks_launched(const char **name) {
    const int pmi = number_in("PMI_SIZE"), step = number_in("SLURM_STEP_NUM_TASKS");
    const struct {
        int count;
        const char *name;
    } launchers[] = {{number_in("OMPI_COMM_WORLD_SIZE"), "mpirun"},
                     {pmi, pmi == step ? "srun" : "mpirun"},
                     {step, "srun"}};
    int launched = 0;
    *name = "";
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && launched <= 1; i++) {
        if (launchers[i].count <= launched) continue;
        launched = launchers[i].count;
        *name = launchers[i].name;
    }
    return launched > 0 ? launched : 1;
}

int ranks_launched_rank(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                            "SLURM_PROCID"};
    const char *name;
    if (ranks_launched(&name) == 1) return 0;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (getenv(variables[i])) return atoi(getenv(variables[i]));
    return 0;
}

int ranks_granted_cores(void) {
    return number_in("SLURM_CPUS_ON_NODE");
}
