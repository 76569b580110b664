/* cmd_score.c -- `statrec score WHAT`: one table of scores. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/score/scores.h"

typedef struct score_row {
    const char *name;
    int (*run)(const tool *t);
    const char *help;
} score_row;

static const score_row scores[] = {
    {"multi-bleu", score_multi_bleu, "BLEU of tokenized text, as multi-bleu.perl"},
    {"bleu", score_bleu, "BLEU of text that is tokenized here, as sacreBLEU"},
    {"dep", score_dep, "UAS and LAS of dependency trees, CoNLL-X, CoNLL-U and malt-tab"},
    {"conll", score_conll, "entities of gold and predicted tags, as conlleval.pl"},
};
enum { SCORES = sizeof scores / sizeof scores[0] };

static void print_help(FILE *to) {
    fprintf(to, "usage: statrec score WHAT [OPTIONS] < FILE\n\n");
    for (int i = 0; i < SCORES; i++) fprintf(to, "  %-11s %s\n", scores[i].name, scores[i].help);
    fprintf(to,
            "\nstatrec score WHAT --help lists the options. docs/scores.md says what each number "
            "is.\n");
}

static int refuse_score(const tool *t, const char *name) {
    const char *names[SCORES];
    sr_failure why = {0};
    for (int i = 0; i < SCORES; i++) names[i] = scores[i].name;
    const char *nearest = tool_nearest(name, names, SCORES);
    sr_fail(&why, SR_USAGE, "unknown score '%.80s'", name);
    if (nearest)
        sr_hint(&why, "did you mean '%s'?", nearest);
    else
        sr_hint(&why, "statrec score --help lists the scores");
    return tool_report(t, &why);
}

int cmd_score(const tool *t) {
    char title[64];
    const char *name = t->argc > 2 ? t->argv[2] : "";
    for (int i = 0; i < SCORES; i++) {
        if (strcmp(scores[i].name, name) != 0) continue;
        snprintf(title, sizeof title, "%s %s", t->name, name);
        const tool of_score = {.name = title, .argc = t->argc, .argv = t->argv};
        return scores[i].run(&of_score);
    }
    if (tool_wants_help(t)) {
        print_help(stdout);
        return TOOL_DONE;
    }
    if (*name) return refuse_score(t, name);
    print_help(stderr);
    return TOOL_USAGE;
}
