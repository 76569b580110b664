/* cmd_score.c -- `statrec score WHAT`: one table of scores. */
#include <stdio.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/score/scores.h"

static const command_row scores[] = {
    {"multi-bleu", score_multi_bleu, "BLEU of tokenized text, as multi-bleu.perl"},
    {"bleu", score_bleu, "BLEU of text that is tokenized here, as sacreBLEU"},
    {"dep", score_dep, "UAS and LAS of dependency trees, CoNLL-X, CoNLL-U and malt-tab"},
    {"conll", score_conll, "entities of gold and predicted tags, as conlleval.pl"},
};
enum { SCORES = sizeof scores / sizeof scores[0] };

static void print_help(FILE *to) {
    fprintf(to, "usage: statrec score WHAT [OPTIONS] < FILE\n\n");
    command_list(to, scores, SCORES);
    fprintf(to, "\nstatrec score WHAT --help lists the options. docs/scores.md defines each "
                "number.\n");
}

int cmd_score(const tool *t) {
    const char *name = t->argc > 2 ? t->argv[2] : "";
    const int status = command_run(t, scores, SCORES, name);
    if (status >= 0) return status;
    if (tool_wants_help(t)) {
        print_help(stdout);
        return TOOL_DONE;
    }
    if (*name)
        return command_unknown(t, scores, SCORES, "score", name,
                               "statrec score --help lists the scores");
    print_help(stderr);
    return TOOL_USAGE;
}
