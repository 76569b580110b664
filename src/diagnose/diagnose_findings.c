/* diagnose_findings.c -- the findings of an open run, one by one, for programs that print them. */
#include <stdio.h>

#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

sr_status diagnose_findings(const sr_runfile *run, const char *path,
                            diagnose_synchronizes_fn *synchronizes, diagnose_finding_fn *tell,
                            void *context, sr_failure *why) {
    static const char *const words[] = {"", "minor", "notable", "severe"};
    diagnosis d;
    sr_status status = diagnosis_make(&d, run, path, synchronizes, why);
    for (int i = 0; i < d.found && status == SR_OK; i++) {
        const answer *a = &d.answers[d.order[i]];
        char line[sizeof a->says + 64];
        const char *id = diagnose_questions[d.order[i]].id;
        snprintf(line, sizeof line, "%s: %s: %s", words[a->severity], id, a->says);
        tell(context, &(diagnose_finding){id, words[a->severity], (int)a->severity, line});
    }
    diagnosis_free(&d);
    return status;
}
