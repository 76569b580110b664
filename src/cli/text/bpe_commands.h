/* bpe_commands.h -- the subcommands of statrec bpe; arguments begin at t->argv[3]. */
#ifndef CLI_TEXT_BPE_COMMANDS_H
#define CLI_TEXT_BPE_COMMANDS_H

#include "base/options/options.h"
#include "base/program/tool.h"

int bpe_learn_command(const tool *t);
int bpe_vocab_command(const tool *t);
int bpe_apply_command(const tool *t);

#endif
