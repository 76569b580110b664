/* data_find.h -- recognizes the data sets of a folder by names and first lines of its files.
 * Opening a set with the options found shows whether they are right. */
#ifndef DATA_FIND_DATA_FIND_H
#define DATA_FIND_DATA_FIND_H

#include "data/data_options.h"
#include "data/find/folder_files.h"

enum { FIND_OPTIONS = 8, FIND_MOST = 16 };

typedef struct find_option {
    const char *key; /* option of statrec train */
    char value[DATA_TEXT];
} find_option;

typedef struct data_finding {
    const char *data; /* row of the table of data sets */
    find_option option[FIND_OPTIONS];
    int options;
    char also[DATA_TEXT]; /* other languages of a text: "cs fr"; "" */
} data_finding;

typedef struct data_found {
    folder_files files;
    data_finding finding[FIND_MOST];
    int findings;
    bool more; /* than FIND_MOST */
} data_found;

/* path: a folder, or one file of it. Free with data_found_free, also after a failure. */
sr_status data_find(const char *path, data_found *found, sr_failure *why);
void data_found_free(data_found *found);

#endif
