/* cmd_info_parts.h -- parts of `statrec info`: the writer of a run file (cmd_info_follow.c), custom
   scalars (cmd_info_declared.c), sites (cmd_info_sites.c), checkpoints (cmd_info_checkpoint.c). */
#ifndef CLI_INFO_CMD_INFO_PARTS_H
#define CLI_INFO_CMD_INFO_PARTS_H

#include "base/program/tool.h"
#include "base/tsv.h"
#include "statrec/runfile.h"

typedef enum {
    WRITER_ALIVE,
    WRITER_GONE,    /* no process of this machine has the file open for writing */
    WRITER_UNKNOWN, /* it runs on another machine or is not visible here */
} writer_state;

/* For an unfinished file; *pid and *idle (seconds since the last write) may be NULL. */
writer_state cmd_info_writer(const sr_run_info *info, long *pid, double *idle);
/* Prints a line when rows arrive, until the run or its writer ends. */
int cmd_info_follow(const tool *t, const char *path);

/* Prints a line, or a note of a table, for each custom scalar of the run. */
void info_print_declared(const sr_runfile *f);
void info_note_declared(const sr_runfile *f, tsv *table);
/* cmd_info_copied.c: the same for each file that a copied run was copied from. */
void info_print_copied(const sr_runfile *f);
void info_note_copied(const sr_runfile *f, tsv *table);
/* cmd_info_sites.c: prints the number of sites, a table of the model's sites, one "   3 NAME". */
void info_print_sites(const sr_runfile *f);
void info_print_site_name(const sr_runfile *f, int64_t site);

/* Prints a checkpoint's attributes; with the options of its run. */
sr_status checkpoint_info(const char *path, bool options, sr_failure *why);

#endif
