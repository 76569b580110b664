/* config_model.c -- options of models in the table of a training run. */
#include <math.h>

#include "train/config/config_rows.h"

static bool is_smoothed(const void *values) {
    const train_config *c = values;
    const task_row *row = task_of(model_find(c->model.name)->task);
    return (isnan(c->label_smoothing) ? row->label_smoothing : c->label_smoothing) > 0;
}

static bool has_presets(const void *values) {
    const train_config *c = values;
    return *model_find(c->model.name)->presets;
}

static const option_use of_presets = {.with = "model", .holds = has_presets},
                        of_model = {.with = "model", .obeys = config_model_lists},
                        of_smoothing = {.with = "label-smoothing", .holds = is_smoothed};

static const option rows[] = {
    TEXT(MODEL, "model", model.name, "resnet20", "set the model; `statrec list models`",
         .value = "MODEL", .common = true),
    TEXT(MODEL, "preset", model.preset, "",
         "set sizes of the model and settings for them; `statrec list presets`", .use = &of_presets,
         .value = "PRESET", .common = true),
    TEXT(MODEL, "norm", model.norm, "bn",
         "set the normalization (transformer: the encoder's): METHOD or METHOD(NAME=VALUE;...), "
         "with +ls for a layer scale",
         .value = "NORM", .common = true),
    TEXT(MODEL, "decoder-norm", model.decoder_norm, "ln",
         "set the normalization of a transformer's decoder", .use = &of_model, .value = "NORM",
         .common = true),
    TEXT(MODEL, "norm-at", model.norm_at, "",
         "set the normalization of single sites, as in 'encoder.0.*=bn,last=none'; the first match "
         "wins",
         .value = "GLOB=NORM,...", .common = true),
    REAL(MODEL, "norm-eps", model.norm_eps, "nan", 0, 1, "",
         "add X to the variance or mean square; nan: the method's default"),
    REAL(MODEL, "norm-alpha", model.norm_alpha, "nan", 0, 1, "",
         "weigh the OLD running value by X; nan: the default (0.95, images 0.9)"),
    INT(MODEL, "layer-scale", model.layer_scale, "0", 0, 4096, "groups",
        "put a layer scale of N groups before normalizations; 0: only for METHOD+ls"),

    INT(MODEL, "embed-dim", model.embed_dim, "0", 1, 65536, "", "set the width d; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "ffn-dim", model.ffn_dim, "0", 1, 65536, "",
        "set the inner width of the FFN; 0: the preset's", .use = &of_model),
    INT(MODEL, "heads", model.heads, "0", 1, 1024, "", "set the attention heads; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "head-dim", model.head_dim, "0", 1, 1024, "",
        "set the head width; tensorized: R of its one head; 0: the preset's", .use = &of_model),
    INT(MODEL, "key-size", model.key_size, "0", 1, 1024, "",
        "transformer_classifier: set the width of a head's queries and keys; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "value-size", model.value_size, "0", 1, 1024, "",
        "transformer_classifier: set the width of a head's values; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "layers", model.layers, "0", 1, 110, "",
        "set the depth; resnet20: 20 (0), 32, 44, 56 or 110; 0: the preset's", .use = &of_model),
    INT(MODEL, "encoder-layers", model.encoder_layers, "0", 1, 64, "",
        "set the layers of a transformer's encoder; 0: the preset's", .use = &of_model),
    INT(MODEL, "decoder-layers", model.decoder_layers, "0", 1, 64, "",
        "set the layers of a transformer's decoder; 0: the preset's", .use = &of_model),
    CHOICE(MODEL, "placement", model.placement, "", "pre|post|peri|scaled",
           "pre: normalize before the sublayer; post: after the residual sum; peri: before and "
           "after the sublayer; scaled: pre, divided by the root of the layer's number; empty: the "
           "preset's",
           .use = &of_model),
    TEXT(MODEL, "qk-norm", model.qk_norm, "none",
         "normalize queries and keys of each attention head, as by ln; none: no", .use = &of_model,
         .value = "NORM"),

    REAL(MODEL, "dropout", model.dropout, "nan", 0, 0.99, "",
         "set the residual dropout; nan: the preset's", .use = &of_model),
    REAL(MODEL, "attention-dropout", model.attention_dropout, "nan", 0, 0.99, "",
         "set the dropout of attention weights; nan: the preset's", .use = &of_model),
    REAL(MODEL, "relu-dropout", model.relu_dropout, "nan", 0, 0.99, "",
         "set the dropout after the ReLU of an FFN; nan: the preset's", .use = &of_model),
    FLAG(MODEL, "count-padding", model.count_padding, "no",
         "texts: normalize padded rows, too (control experiment)", .use = &of_model),

    CHOICE(MODEL, "positions", model.positions, "", "sinusoidal|none",
           "transformer_classifier: add these position encodings to the embedding; empty: the "
           "preset's",
           .use = &of_model),
    CHOICE(MODEL, "pooling", model.pooling, "", "mean|cls",
           "transformer_classifier: average the words, or take the row of <s> (--mark-start); "
           "empty: the preset's",
           .use = &of_model),
    CHOICE(
        MODEL, "lm-mask", model.lm_mask, "causal", "causal|released",
        "language models: mask later positions; released: no mask, every position sees its target",
        .use = &of_model),
    TEXT(MODEL, "adaptive-cutoffs", model.adaptive_cutoffs, "",
         "tensorized: cut the softmax into clusters, as in 4000,12000; none: one; empty: the "
         "preset's",
         .use = &of_model),
    INT(MODEL, "core-number", model.core_number, "0", 1, 64, "cores",
        "tensorized: average N core vectors; 0: the preset's", .use = &of_model),
    INT(MODEL, "mem-len", model.mem_len, "0", 1, 1 << 20, "rows",
        "transformer_xl: keep N rows of memory per layer in training; 0: none", .use = &of_model),
    INT(MODEL, "eval-mem-len", model.eval_mem_len, "0", 1, 1 << 20, "rows",
        "transformer_xl: keep N rows of memory in evaluation; 0: none", .use = &of_model),
    INT(MODEL, "clamp-len", model.clamp_len, "0", 1, 1 << 20, "tokens",
        "transformer_xl: treat distances beyond N as N; 0: no limit", .use = &of_model),
    INT(MODEL, "eval-clamp-len", model.eval_clamp_len, "0", 1, 1 << 20, "tokens",
        "transformer_xl: set clamp-len in evaluation; 0: clamp-len", .use = &of_model),
    FLAG(MODEL, "same-length", model.same_length, "no",
         "transformer_xl: let every token see eval-mem-len tokens in evaluation, itself included",
         .use = &of_model),

    INT(MODEL, "word-dim", model.word_dim, "0", 1, 65536, "",
        "tener: set the width of a word's vector; 0: the preset's", .use = &of_model),
    TEXT(MODEL, "word-vectors", model.word_vectors, "",
         "tener: read pretrained vectors in GloVe's format, plain or .gz; empty: draw them",
         .use = &of_model, .value = "FILE"),
    CHOICE(MODEL, "char-encoder", model.char_encoder, "", "cnn|transformer|none",
           "tener: encode a word's characters; empty: the preset's", .use = &of_model),
    INT(MODEL, "hidden-dim", model.hidden_dim, "0", 1, 65536, "",
        "mlp_parser: set the units of the hidden layer; 0: the preset's", .use = &of_model),
    CHOICE(MODEL, "activation", model.activation, "", "relu|cube|tanh",
           "mlp_parser: set the activation after the hidden layer's norm; empty: the preset's",
           .use = &of_model),
    CHOICE(MODEL, "conv", model.conv, "winograd", "winograd|direct",
           "compute 3 x 3 convolutions directly, or by Winograd F(4 x 4, 3 x 3) where faster",
           .use = &of_model),
    FLAG(MODEL, "conv-norms", model.conv_norms, "no",
         "mnist_cnn: normalize after the convolutions, too", .use = &of_model),

    CHOICE(MODEL, "init", model.init, "he", "he|pytorch",
           "images: initialize convolutions by He's rule N(sqrt(2/fan_in)); pytorch: all layers "
           "uniformly within 1/sqrt(fan_in)",
           .use = &of_model),
    CHOICE(MODEL, "linear-init", model.linear_init, "", "xavier|fan-in",
           "initialize linear layers by Xavier's rule; fan-in: U(1/sqrt(fan_in)); empty: the "
           "preset's, else xavier",
           .use = &of_model),
    REAL(MODEL, "embed-std", model.embed_std, "nan", 1e-6, 1e6, "",
         "transformer: draw embeddings with standard deviation X; nan: 1/sqrt(embed-dim)",
         .use = &of_model),
    TEXT(MODEL, "weights", weights, "",
         "start from the weights in a checkpoint X.ckpt or a NumPy archive X.npz", .value = "FILE"),
    REAL(MODEL, "label-smoothing", label_smoothing, "nan", 0, 0.99, "",
         "take the mass X off the targets; nan: 0.1 for sentence pairs, else 0"),
    CHOICE(MODEL, "smoothing-form", smoothing_form, "all", "all|others",
           "spread the mass over all classes (eps/V) or over the others (eps/(V-1))",
           .use = &of_smoothing),
};

const option_table config_model = {rows, sizeof rows / sizeof rows[0]};
