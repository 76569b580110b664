/* folder_files.h -- the files of a folder: their names, the splits in these names, and the kind of
 * text in their first lines. */
#ifndef DATA_FIND_FOLDER_FILES_H
#define DATA_FIND_FOLDER_FILES_H

#include "data/find/text_looks.h"
#include "text/file_bytes.h"

enum { FOLDER_FILES_MOST = 4096, FOLDER_NAME = 256 };

typedef enum { ROLE_NONE, ROLE_TRAIN, ROLE_VALID, ROLE_TEST } file_role;

typedef struct folder_file {
    char name[FOLDER_NAME]; /* without .gz; control characters: the file is left out */
    char rest[FOLDER_NAME]; /* the name with * for the word of its role */
    file_role role;         /* from its name */
    bool folder;
    bool used; /* by a finding */
    text_looks looks;
    sr_failure why; /* why it was not read; text "": it was read, or not opened */
} folder_file;

typedef struct folder_files {
    char path[FILE_PATH];
    folder_file *file; /* [count], bytes ascending */
    int count, capacity;
    int links, others; /* links out of the folder; pipes, devices, odd names: left out */
    bool more;         /* than FOLDER_FILES_MOST */
} folder_files;

/* only: the one file to take; NULL: all. Hidden files are left out. */
sr_status folder_files_read(const char *path, const char *only, folder_files *f, sr_failure *why);
void folder_files_free(folder_files *f);
/* NULL: no such file. */
folder_file *folder_files_find(const folder_files *f, const char *name);
/* Sets `looks` of each file that may be a text. */
void folder_files_look(folder_files *f);
/* "eng.testa" is ROLE_VALID with the rest "eng.*". rest may be NULL. */
file_role folder_role(const char *name, char rest[FOLDER_NAME]);

#endif
