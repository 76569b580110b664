/* statrec.c -- the program: one table of commands, and the frame around them. */
#include <stdio.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "statrec/runfile.h"

static const command_row commands[] = {
    {"train", cmd_train, "train a model and record its normalization statistics"},
    {"resume", cmd_resume, "resume a run that was killed or interrupted"},
    {"translate", cmd_translate, "translate text by a trained model, with beam search"},
    {"evaluate", cmd_evaluate, "compute metrics and TID of a trained model"},
    {"average", cmd_average, "average checkpoints, recompute running statistics"},
    {"info", cmd_info, "print a summary of a run file, finished or still growing"},
    {"view", cmd_view, "open an interactive page of runs in the browser"},
    {"study", cmd_study, "make grids of runs, resume them, and write tables of their differences"},
    {"diagnose", cmd_diagnose, "find out whether the normalization of a run is healthy"},
    {"check", cmd_check, "verify run files and checkpoints"},
    {"recover", cmd_recover, "copy the readable rows of a broken run file into a new one"},
    {"copy", cmd_copy, "copy a run or a part of it: thinned, fewer sites, anonymous"},
    {"export", cmd_export, "write a run's records or a checkpoint's weights as a NumPy archive"},
    {"score", cmd_score, "score translations, entities or trees against references"},
    {"dictionary", cmd_dictionary, "count the words of texts, as fairseq does"},
    {"list", cmd_list, "list norms, models, presets, data, tasks, stats, figures, sites and more"},
    {"bpe", cmd_bpe, "learn subwords, split text into them, count them"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fprintf(out, "usage: statrec COMMAND [ARGUMENTS]\n"
                 "\n"
                 "Trains models with any normalization at any site. Records every site of every\n"
                 "step into one HDF5 run file.\n"
                 "\n");
    command_list(out, commands, COMMANDS);
    fprintf(out, "  %-11s %s\n", "help", "print the help of a command, as COMMAND --help");
    fprintf(out, "\n"
                 "statrec --version prints the version. Exit status: 0 done, 1 failed, 2 usage,\n"
                 "3 a run that diverged, 128+n after signal n.\n");
}

static int run_command(const tool *t, const char *name, int argc, char **argv) {
    const tool of_command = {.name = t->name, .argc = argc, .argv = argv};
    const int status = command_run(&of_command, commands, COMMANDS, name);
    if (status < 0)
        return command_unknown(t, commands, COMMANDS, "command", name,
                               "statrec --help lists the commands");
    char title[64];
    snprintf(title, sizeof title, "%s %s", t->name, name);
    return tool_finish(&(tool){.name = title}, status);
}

int main(int argc, char **argv) {
    tool t = {.name = "statrec", .argc = argc, .argv = argv};
    const char *first = argc > 1 ? argv[1] : "";
    tool_begin();
    sr_disable_hdf5_atexit();
    if (strcmp(first, "help") == 0 && argc == 3 && strcmp(argv[2], "help") != 0) {
        char help[] = "--help";
        return run_command(&t, argv[2], 3, (char *[]){argv[0], argv[2], help, NULL});
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
        print_help(stdout);
        return tool_finish(&t, TOOL_DONE);
    }
    if (strcmp(first, "--version") == 0) return tool_print_version(&t);
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    return run_command(&t, first, argc, argv);
}
