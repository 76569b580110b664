/* data_report.h -- prints a data set for statrec data. */
#ifndef CLI_DATA_DATA_REPORT_H
#define CLI_DATA_DATA_REPORT_H

#include "base/program/tool.h"
#include "data/find/data_find.h"

/* Reads a data set as the command that it prints would. vectors: a file of word vectors; "":
 * none. */
sr_status data_report_print(const folder_files *files, const data_finding *set, const char *vectors,
                            sr_failure *why);
/* Prints files that no data set uses, and omitted files. */
void data_report_others(const data_found *found);
/* An error that names the kinds of the files. */
void data_report_nothing(const tool *t, const data_found *found);

#endif
