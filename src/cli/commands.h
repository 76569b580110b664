/* commands.h -- the subcommands of statrec.
 *
 * A command gets the whole command line: t->argv[1] is its name, arguments begin at t->argv[2],
 * t->name is "statrec NAME". It returns the exit status and prints its own --help; main closes
 * standard output (tool_finish). A command that uses tool_signal calls tool_catch_signals itself.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "base/program/tool.h"

int cmd_train(const tool *t);
int cmd_resume(const tool *t);
int cmd_translate(const tool *t);
int cmd_evaluate(const tool *t);
int cmd_average(const tool *t);
int cmd_info(const tool *t);
int cmd_view(const tool *t);
int cmd_study(const tool *t);
int cmd_check(const tool *t);
int cmd_diagnose(const tool *t);
int cmd_recover(const tool *t);
int cmd_copy(const tool *t);
int cmd_export(const tool *t);
int cmd_score(const tool *t);
int cmd_list(const tool *t);
int cmd_bpe(const tool *t);
int cmd_dictionary(const tool *t);

#endif
