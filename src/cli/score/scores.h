/* scores.h -- the scores of `statrec score`.
 *
 * A score gets the whole command line: t->argv[2] is its name, arguments begin at t->argv[3],
 * t->name is "statrec score NAME". It returns the exit status and prints its own --help.
 */
#ifndef CLI_SCORE_SCORES_H
#define CLI_SCORE_SCORES_H

#include "base/program/tool.h"

int score_multi_bleu(const tool *t);
int score_bleu(const tool *t);
int score_dep(const tool *t);
int score_conll(const tool *t);

#endif
