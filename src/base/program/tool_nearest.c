/* tool_nearest.c -- "did you mean": by meaning, then by spelling.
 *
 * The table has the words of papers and other programs for names of ours. A row helps wherever its
 * second word is among the names that a message may propose.
 */
#include <ctype.h>
#include <string.h>

#include "base/program/tool.h"

/* Words in small letters, without - and _. */
static const struct {
    const char *said, *name;
} meant[] = {
    /* normalizations */
    {"batch", "bn"},
    {"batchnorm", "bn"},
    {"batchnormalization", "bn"},
    {"batchnorm1d", "bn"},
    {"batchnorm2d", "bn"},
    {"syncbatchnorm", "bn"},
    {"layer", "ln"},
    {"layernorm", "ln"},
    {"layernormalization", "ln"},
    {"power", "pn"},
    {"powernorm", "pn"},
    {"regularizedbn", "rbn"},
    {"batchrenorm", "brn"},
    {"batchrenormalization", "brn"},
    {"group", "groupnorm"},
    {"gn", "groupnorm"},
    {"instance", "instancenorm"},
    {"in", "instancenorm"},
    {"rms", "rmsnorm"},
    {"dynamictanh", "dyt"},
    {"unifiednorm", "un"},
    {"identity", "none"},
    {"no", "none"},
    {"off", "none"},
    /* models */
    {"seq2seq", "transformer"},
    {"gpt", "transformer_lm"},
    {"gpt2", "transformer_lm"},
    {"lm", "transformer_lm"},
    {"languagemodel", "transformer_lm"},
    {"bert", "transformer_classifier"},
    {"classifier", "transformer_classifier"},
    {"resnet", "resnet20"},
    {"txl", "transformer_xl"},
    {"ner", "tener"},
    {"parser", "mlp_parser"},
    /* options */
    {"learningrate", "lr"},
    {"steps", "max-steps"},
    {"maxupdates", "max-steps"},
    {"maxupdate", "max-steps"},
    {"iterations", "max-steps"},
    {"numtrainepochs", "epochs"},
    {"maxepoch", "epochs"},
    {"scheduler", "lr-scheduler"},
    {"warmup", "warmup-updates"},
    {"warmupsteps", "warmup-updates"},
    {"gradclip", "clip-norm"},
    {"maxgradnorm", "clip-norm"},
    {"wd", "weight-decay"},
    {"bs", "batch-size"},
    {"batch", "batch-size"},
    {"accumulate", "update-freq"},
    {"gradientaccumulationsteps", "update-freq"},
    {"dataset", "data"},
    {"datapath", "data-dir"},
    {"out", "output"},
    {"normalization", "norm"},
    {"normlayer", "norm"},
    {"arch", "model"},
    {"architecture", "model"},
    {"evalinterval", "validate-interval-updates"},
    {"numthreads", "threads"},
    {"overwrite", "force"},
    {"randomseed", "seed"},
    {"layer", "site"},
    {"module", "site"},
    {"statistic", "stat"},
    /* values */
    {"val", "valid"},
    {"validation", "valid"},
    /* figures and commands */
    {"figure2", "fig2"},
    {"figure3", "fig3"},
    {"figure4", "fig4"},
    {"figure5", "fig5"},
    {"figure6", "fig6"},
    {"figure7", "fig7"},
    {"loss", "curves"},
    {"losses", "curves"},
    {"spectrum", "fig6"},
    {"singularvalues", "fig6"},
    {"eval", "evaluate"},
    {"test", "evaluate"},
    {"show", "info"},
    {"validate", "check"},
    {"verify", "check"},
    {"repair", "recover"},
    {"fix", "recover"},
    {"continue", "resume"},
    {"restart", "resume"},
    {"doctor", "diagnose"},
};

enum { NAME_MAX_LENGTH = 63 };

/* At most NAME_MAX_LENGTH bytes of text, in small letters without - and _. */
static void plain_word(const char *text, char word[NAME_MAX_LENGTH + 1]) {
    int length = 0;
    for (; *text && length < NAME_MAX_LENGTH; text++)
        if (*text != '-' && *text != '_') word[length++] = (char)tolower((unsigned char)*text);
    word[length] = 0;
}

static const char *same_meaning(const char *given, const char *const *names, int count) {
    char word[NAME_MAX_LENGTH + 1];
    plain_word(given, word);
    for (size_t k = 0; k < sizeof meant / sizeof meant[0]; k++)
        for (int i = 0; i < count && strcmp(meant[k].said, word) == 0; i++)
            if (strcmp(names[i], meant[k].name) == 0) return names[i];
    return NULL;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

/* Levenshtein distance without case; both at most NAME_MAX_LENGTH bytes. */
static int edit_distance(const char *a, const char *b) {
    int row[NAME_MAX_LENGTH + 1], length = (int)strlen(b);
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int replaced =
                diagonal + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[length];
}

const char *tool_nearest(const char *given, const char *const *names, int count) {
    int best = 3, length = (int)strlen(given);
    if (length > NAME_MAX_LENGTH) return NULL;
    const char *meant_name = same_meaning(given, names, count), *nearest = NULL;
    if (meant_name) return meant_name;
    for (int i = 0; i < count; i++) {
        int other = (int)strlen(names[i]);
        if (other > NAME_MAX_LENGTH) continue;
        int distance = edit_distance(given, names[i]);
        /* At least half of the letters must agree: "xx" is not a misspelt "bn". */
        if (distance < best && 2 * distance <= (length > other ? length : other))
            best = distance, nearest = names[i];
    }
    return nearest;
}
