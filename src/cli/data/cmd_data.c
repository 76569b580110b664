/* cmd_data.c -- statrec data DIRECTORY|FILE...: lists the data sets in a folder and the commands
 * that read them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/data/data_report.h"

enum { DEPTH_MOST = 2 }; /* folders in a folder that holds nothing itself */

typedef struct data_values {
    option_text vectors;
} data_values;

#define AT(field) offsetof(data_values, field)
static const option data_rows[] = {
    TEXT_OPTION(NULL, "word-vectors", AT(vectors), "",
                "count the words that these vectors have, in GloVe's format, plain or .gz",
                .value = "FILE"),
};

static const command_frame frame = {
    "usage: statrec data [OPTIONS] DIRECTORY|FILE...\n"
    "\n"
    "Prints the data sets in a folder, or the one that begins with a training file: the command\n"
    "that trains on it, the counts of its splits, and what is odd: sentences that occur again or\n"
    "in the training text, too, empty sides, uneven lengths, classes and labels that occur once,\n"
    "words without a vector. Looks into the folders of a folder that holds no data itself.\n"
    "Follows no link out of the folder.\n"
    "\n",
    {data_rows, sizeof data_rows / sizeof data_rows[0]},
    NULL,
    "0 a data set was read, 1 none was, 2 usage.",
    2};

/* The results of a call so far. */
typedef struct survey {
    const tool *tool;
    const data_values *values;
    int read, failed; /* data sets */
} survey;

static void print_findings(survey *s, const data_found *found) {
    for (int i = 0; i < found->findings; i++) {
        sr_failure why = {0};
        if (s->read) putchar('\n');
        if (data_report_print(&found->files, &found->finding[i], s->values->vectors, &why) ==
            SR_OK) {
            s->read++;
            continue;
        }
        s->failed++;
        tool_report(s->tool, &why);
    }
}

static bool look_into(survey *s, const char *path, int depth);

/* Folders of a folder that holds no data itself. */
static void look_below(survey *s, const folder_files *f, int depth) {
    char path[FILE_PATH + FOLDER_NAME];
    for (int i = 0; depth < DEPTH_MOST && i < f->count; i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, f->file[i].name);
        if (f->file[i].folder) look_into(s, path, depth + 1);
    }
}

/* False: there is nothing to read. */
static bool look_into(survey *s, const char *path, int depth) {
    sr_failure why = {0};
    data_found *found = calloc(1, sizeof *found);
    if (!found) {
        tool_error(s->tool, TOOL_FAILED, "out of memory");
        return false;
    }
    const int before = s->read + s->failed;
    if (data_find(path, found, &why) != SR_OK) {
        s->failed++;
        tool_report(s->tool, &why);
    } else {
        print_findings(s, found);
        if (found->findings) data_report_others(found);
        if (!found->findings) look_below(s, &found->files, depth);
        if (depth == 0 && s->read + s->failed == before) data_report_nothing(s->tool, found);
    }
    data_found_free(found);
    free(found);
    return s->read + s->failed > before;
}

int cmd_data(const tool *t) {
    data_values v;
    int paths = 0, code;
    if (command_ends(t, &frame, &v, &paths, &code)) return code;
    if (paths == 0) return tool_error(t, TOOL_USAGE, "no folder given");
    survey s = {.tool = t, .values = &v};
    bool all = true;
    for (int i = 0; i < paths; i++) {
        const int before = s.read;
        look_into(&s, t->argv[2 + i], 0);
        all = all && s.read > before;
    }
    return all ? TOOL_DONE : TOOL_FAILED;
}
