/* cmd_info_parts.h -- what cmd_info.c has from its neighbours: whether somebody still writes a run file
 * (cmd_info_follow.c), what its program declared (cmd_info_declared.c), how many sites it has
 * (cmd_info_shares.c), and what a checkpoint says (cmd_info_checkpoint.c). */
#ifndef CLI_INFO_CMD_INFO_PARTS_H
#define CLI_INFO_CMD_INFO_PARTS_H

#include "base/program/tool.h"
#include "base/tsv.h"
#include "statrec/runfile.h"

typedef enum {
    WRITER_ALIVE,
    WRITER_GONE,    /* no process of this machine has the file open for writing */
    WRITER_UNKNOWN, /* it runs on another machine, or its processes may not be looked at */
} writer_state;

/* Of an unfinished file; *pid and *idle (seconds since the last write) may be NULL. */
writer_state cmd_info_writer(const sr_run_info *info, long *pid, double *idle);
/* Prints a line when rows arrive, until the run ends or its writer is gone. */
int cmd_info_follow(const tool *t, const char *path);

/* A line for each number that the program of the run declared; the same as notes of a table. */
void info_print_declared(const sr_runfile *f);
void info_note_declared(const sr_runfile *f, tsv *table);
/* cmd_info_sites.c: the count of a run's sites and, in a table, those of the model; "   3 NAME" of one. */
void info_print_sites(const sr_runfile *f);
void info_print_site_name(const sr_runfile *f, int64_t site);

/* Prints what a checkpoint says of itself; with the options of its run. */
sr_status checkpoint_info(const char *path, bool options, sr_failure *why);

#endif
