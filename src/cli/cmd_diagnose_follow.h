/* cmd_diagnose_follow.h -- statrec diagnose --follow: prints the findings of a growing run. */
#ifndef CLI_CMD_DIAGNOSE_FOLLOW_H
#define CLI_CMD_DIAGNOSE_FOLLOW_H

#include "base/program/tool.h"
#include "diagnose/diagnose.h"

typedef struct diagnose_follow {
    const char *path, *command; /* command: run once for each new finding; "": none */
    double every;               /* seconds between two diagnoses */
    diagnose_synchronizes_fn *synchronizes;
    int worst; /* out: as diagnose_finding.weight, over all findings */
} diagnose_follow;

/* Until the run or its writer ends, or a signal comes. Returns the exit status. */
int cmd_diagnose_follow(const tool *t, diagnose_follow *f);

#endif
