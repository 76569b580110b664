/* child_complaint.h -- reports of a test's child process: prints a line on standard error and ends
 * the child with status 1. */
#ifndef TESTS_CHILD_COMPLAINT_H
#define TESTS_CHILD_COMPLAINT_H

#include "statrec/base.h"

/* after: the operation before the fault. */
__attribute__((format(printf, 2, 3))) void complain(const char *after, const char *format, ...);
/* Complains unless the failure is one line with a reason that contains `name`. */
void complain_unless_told(const char *after, const char *name, const sr_failure *why);

#endif
