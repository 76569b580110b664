/* child_complaint.h -- faults that a child process of a test finds: a line on standard error, and
 * the child ends with status 1. */
#ifndef TESTS_CHILD_COMPLAINT_H
#define TESTS_CHILD_COMPLAINT_H

#include "statrec/base.h"

/* after: what was done. */
__attribute__((format(printf, 2, 3))) void complain(const char *after, const char *format, ...);
/* Unless the failure is one line with a reason, in which `name` occurs. */
void complain_unless_told(const char *after, const char *name, const sr_failure *why);

#endif
