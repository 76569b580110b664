/* models.h -- models: one file model_*.c and one row of the table each. A model owns its
 * parameters and normalization sites and turns a batch into what its task takes a loss of. */
#ifndef NETS_MODELS_H
#define NETS_MODELS_H

#include "batch/batch.h"
#include "engine/ops/ops.h"
#include "engine/params.h"
#include "nets/pass.h"
#include "norm/norm_options.h"
#include "norm/norm_site.h"

enum { MODEL_TEXT = 512 };

typedef struct model_options {
    char name[MODEL_TEXT];         /* row of the table: "resnet20" */
    char preset[MODEL_TEXT];       /* "" or a preset of that model */
    char norm[MODEL_TEXT];         /* as "brn(r_max=3)+ls": every site, or encoder sites */
    char decoder_norm[MODEL_TEXT]; /* transformer: decoder sites */
    char norm_at[MODEL_TEXT];      /* "SITES=METHOD,...", first match wins, before the two above */
    double norm_eps,
        norm_alpha;      /* NaN: the method's default (alpha: the model's, where it has one) */
    int64_t layer_scale; /* groups; 0 = as METHOD+ls or the method says */
    char norm_param[NORM_OPTION_MAX]
                   [MODEL_TEXT]; /* of norm_option_at(i); "": the method's default */
    bool count_padding;          /* transformer: control, padded rows take part in normalizations */
    char init[MODEL_TEXT];       /* images: "he" or "pytorch"; "" = he */
    char conv[MODEL_TEXT];       /* images: "winograd" (or ""), "direct": how op_conv2d sums */
    bool conv_norms;             /* mnist_cnn: norms behind the convolutions too */
    /* transformer; 0 or NaN: what the preset says */
    int64_t embed_dim, ffn_dim, heads, encoder_layers, decoder_layers;
    char placement[MODEL_TEXT]; /* "pre", "post", "peri", "scaled" or "" = the preset's */
    char qk_norm[MODEL_TEXT]; /* method of the queries and keys of each head; "" or "none": none */
    double dropout, attention_dropout, relu_dropout;
    char linear_init[MODEL_TEXT]; /* "xavier", "fan-in"; "" = the preset's */
    double embed_std;             /* of the embedding's entries; NaN: 1/sqrt(d) */
    int64_t key_size, value_size; /* of an attention head; 0: the preset's */
    char pooling[MODEL_TEXT];     /* classifiers: "mean", "cls"; "" = the preset's */
    char positions[MODEL_TEXT];   /* classifiers: "sinusoidal", "none"; "" = the preset's */
    /* language models; 0 or "": what the preset says. layers: of resnet20 too */
    int64_t layers, head_dim, core_number;
    char lm_mask[MODEL_TEXT];          /* "causal" (or ""), "released": none */
    char adaptive_cutoffs[MODEL_TEXT]; /* "4000,12000", "none" */
    /* transformer_xl: rows of memory, and the distance that greater ones count as; 0: none, of
     * eval_clamp_len: clamp_len. same_length: in evaluation every query sees eval_mem_len keys. */
    int64_t mem_len, eval_mem_len, clamp_len, eval_clamp_len;
    bool same_length;
    /* parsers: 0 or "": what the preset says */
    int64_t hidden_dim;
    char activation[MODEL_TEXT];   /* "relu", "cube", "tanh" */
    char word_vectors[MODEL_TEXT]; /* tener: file that the word embedding begins with, or "" */
    int64_t word_dim;              /* tener: width of a word's vector; 0: the preset's */
    char char_encoder[MODEL_TEXT]; /* tener: "cnn", "transformer", "none" or "" = the preset's */
    uint64_t seed;
    int64_t most_parameters; /* numbers in them that there may be, as a file has from which the
                                values are then read (params.h); 0: any */
} model_options;

typedef struct model model;
typedef struct model_attention model_attention;

/* A sentence to decode: token [length], no padding, </s> last. */
typedef struct model_source {
    const int32_t *token;
    int64_t length;
} model_source;

/* How a model writes sentences, word by word: normalizations take running statistics, nothing is
 * dropped out, and what becomes of a sentence and of a hypothesis depends on no other that is decoded
 * with it nor on the number of threads, to the last bit. */
enum { WORDS_TOGETHER = 64 };
typedef struct model_decoder {
    /* What decodes with the model as it is now: its weights may change only after decoder's free.
     * NULL and *why: out of memory, or a normalization whose statistics need the whole sentence
     * (SR_USAGE). Decoders of a model may be at work at the same time. beside: one whose copies of the
     * weights serve here too and that is freed later; NULL: none. */
    void *(*create)(model *m, const void *beside, int threads, sr_failure *why);
    void (*free)(void *decoder);
    /* Encodes `count` sentences and forgets those before. */
    sr_status (*start)(void *decoder, const model_source *source, int64_t count, sr_failure *why);
    /* Row i is the hypothesis of row parent[i] of the call before, of sentence parent[i] in the first
     * call after start, with token[i] behind it. Writes source_at [rows], the place of the source
     * word but </s> that the last layer's heads attend to most, averaged (-1: the source is </s>
     * alone); NULL: not wanted. */
    sr_status (*step)(void *decoder, int64_t rows, const int32_t *parent, const int32_t *token,
                      int32_t *source_at, sr_failure *why);
    /* Of a row of the last step, by any thread: natural logs of the next word's probability, for the
     * words first .. first + count - 1. */
    void (*log_p)(const void *decoder, int64_t row, int64_t first, int64_t count, double *log_p);
    /* Of each WORDS_TOGETHER of them from word 0 on, the largest; bit for bit one of them. */
    void (*largest)(const void *decoder, int64_t row, double *log_p);
} model_decoder;

/* What a pass of a recurrent model leaves to the next one of the same stream: of each sequence the
 * newest rows that went into each layer, without gradient. It belongs to whoever goes through the
 * stream, and is empty where one begins. */
typedef struct model_memory {
    int64_t layers, sequences, rows, width; /* rows: of a sequence, at most; 0: carries nothing */
    int64_t filled;                         /* rows of each sequence that are there */
    real *value; /* [layers, sequences, rows, width], the last `filled` rows, the newest last; the
                    others are zeros */
} model_memory;

/* How a parser's model scores states: normalizations take running statistics, nothing is dropped out,
 * and what becomes of a state depends on no other and not on the number of threads, to the last bit. */
typedef struct model_scorer {
    /* With the model as it is now, as a decoder's. NULL and *why. */
    void *(*create)(model *m, int threads, sr_failure *why);
    void (*free)(void *scorer);
    /* logits [rows, classes] of feature [rows, features]. */
    sr_status (*score)(void *scorer, int64_t rows, const int32_t *feature, real *logits,
                       sr_failure *why);
} model_scorer;

typedef struct model_row {
    const char *name, *citation, *summary;
    task task;
    const char *presets; /* "mini|transformer|..." or "" */
    const char *options; /* keys of the options of models that it obeys, between blanks; those of
                            normalizations it always does */
    sr_status (*build)(model *m, const model_options *o, const data_shape *shape, sr_failure *why);
    /* What the task takes its loss of: logits [rows, classes], or of a model with gives_nll the
     * negative log-likelihood of each token [rows]. NULL after a failure of the tape. */
    tensor *(*forward)(model *m, pass *p);
    void (*free)(model *m);
    /* What has to stand beside a result of this model, static storage: "mask causal"; NULL: nothing
     */
    const char *(*condition)(const model *m);
    double alpha;                 /* instead of the 0.95 of methods made for text; 0: theirs */
    const model_decoder *decoder; /* NULL: it writes no sentences */
    const model_scorer *scorer;   /* NULL: it parses none */
} model_row;

/* An attention of a model: what whoever watches it learns of its weights in a pass of mode NORM_TRAIN
 * (attention_report in ops.h). Arrays live as long as the call. */
typedef void attention_hook_fn(void *context, const model_attention *a,
                               const attention_report *found);
struct model_attention {
    const norm_site *site; /* the norm of its branch that stands first, by which it is known */
    int heads;
    attention_hook_fn *hook; /* NULL: nobody, and nothing is computed */
    void *context;
};

struct model {
    const model_row *row;
    params params;
    norm_site **site; /* in the order of the forward pass */
    int sites, capacity;
    model_attention **attention; /* owned, in the order of the forward pass */
    int attentions;
    int *
        assigned; /* of each site that is to come, which of norm_at's assignments decides; -1: none;
                      NULL: there are none */
    tensor *embedding;        /* word embedding [V, d] or NULL; of the source's words */
    tensor *target_embedding; /* of the target's words, the same one where they have no other */
    bool gives_nll;           /* set by build */
    /* Set by build: sizes of the memory of a pass, rows in training and in evaluation. */
    int64_t memory_layers, memory_width, memory_rows, memory_eval_rows;
    void *self; /* the model's own struct */
};

const model_row *model_find(const char *name);
const model_row *model_at(int i); /* NULL past the end */
/* True when the model obeys the option with this key. */
bool model_obeys(const char *name, const char *key);

model *model_create(const model_options *o, const data_shape *shape, sr_failure *why);
void model_free(model *m);
/* The row's condition, "" when there is none. */
const char *model_condition(const model *m);
/* An empty memory for so many sequences side by side; of a model that carries nothing one without
 * rows. To be freed. */
sr_status model_memory_init(model_memory *k, const model *m, bool training, int64_t sequences,
                            sr_failure *why);
void model_memory_free(model_memory *k);
void model_memory_empty(model_memory *k);
/* For model files. The rows of a layer that are there, with x [sequences, T, width] behind them, to
 * which alone a gradient goes; x is kept for the next pass. k NULL, or without rows: x. */
tensor *model_memory_behind(model_memory *k, tape *t, int64_t layer, tensor *x);
/* When every layer has kept its T rows: they are there. */
void model_memory_advance(model_memory *k, int64_t T);

/* For model files: a new site at the next depth, normalized by what norm_at says for its name, else
 * by `norm`. NULL on failure. */
norm_site *model_add_site(model *m, const model_options *o, const char *name, const char *kind,
                          int64_t features, const char *norm, sr_failure *why);
/* For model files: a new attention, that of the branch of `site`. NULL on failure. */
model_attention *model_add_attention(model *m, const norm_site *site, int64_t heads,
                                     sr_failure *why);
/* Weight of the OLD running value of a method that has one: what the options say, else the method's
 * or the model's instead of the text methods' 0.95. */
double model_norm_alpha(const model *m, const model_options *o, const norm_method *method);
/* The rows as this site's method wants them: every token its own sample where it asks for that.
 * NULL when out of memory. */
const norm_rows *model_rows_for(const norm_site *s, tape *t, const norm_rows *rows);

#endif
