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

static const option first[] = {
    TEXT(MODEL, "model", model.name, "resnet20", "model, see `statrec list models`",
         .value = "MODEL"),
    TEXT(MODEL, "preset", model.preset, "",
         "sizes of a model and what goes with them, see `statrec list presets`", .use = &of_presets,
         .value = "PRESET"),
    TEXT(MODEL, "norm", model.norm, "bn",
         "normalization of all sites; of a transformer: of its encoder; METHOD+ls: behind a layer "
         "scale",
         .value = "NORM"),
    TEXT(MODEL, "decoder-norm", model.decoder_norm, "ln",
         "normalization of a transformer's decoder", .use = &of_model, .value = "NORM"),
    TEXT(MODEL, "norm-at", model.norm_at, "",
         "normalization by site, globs, first or last, as in "
         "'encoder.0.*=bn,encoder.*=ln,last=none': first match wins",
         .value = "GLOB=NORM,..."),
    REAL(MODEL, "norm-eps", model.norm_eps, "nan", 0, 1, "",
         "added to the variance or mean square; nan: the method's, see `statrec list norms`"),
    REAL(MODEL, "norm-alpha", model.norm_alpha, "nan", 0, 1, "",
         "weight of the OLD running value; nan: the method's (0.95, for images 0.9)"),
    INT(MODEL, "layer-scale", model.layer_scale, "0", 0, 4096, "groups",
        "layer scale in front of every normalization; 0: where METHOD+ls or the method has one"),
};

static const option rows[] = {
    INT(MODEL, "embed-dim", model.embed_dim, "0", 1, 65536, "", "width d; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "ffn-dim", model.ffn_dim, "0", 1, 65536, "",
        "inner width of the FFN; 0: the preset's", .use = &of_model),
    INT(MODEL, "heads", model.heads, "0", 1, 1024, "", "attention heads; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "head-dim", model.head_dim, "0", 1, 1024, "",
        "tensorized: width R of its one head; transformer_xl: of each head; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "key-size", model.key_size, "0", 1, 1024, "",
        "transformer_classifier: features of a head's queries and keys; 0: the preset's",
        .use = &of_model),
    INT(MODEL, "value-size", model.value_size, "0", 1, 1024, "",
        "transformer_classifier: of its values; 0: the preset's", .use = &of_model),
    INT(MODEL, "layers", model.layers, "0", 1, 110, "",
        "depth; 0: the preset's; resnet20: 20 (0), 32, 44, 56 or 110", .use = &of_model),
    INT(MODEL, "encoder-layers", model.encoder_layers, "0", 1, 64, "",
        "layers of a transformer's encoder; 0: the preset's", .use = &of_model),
    INT(MODEL, "decoder-layers", model.decoder_layers, "0", 1, 64, "",
        "layers of its decoder; 0: the preset's", .use = &of_model),
    CHOICE(MODEL, "placement", model.placement, "", "pre|post|peri|scaled",
           "where norms stand: before each sublayer, behind the sum, before the sublayer and "
           "behind it, "
           "or before it, divided by the root of the layer's number; empty: the preset's",
           .use = &of_model),
    TEXT(MODEL, "qk-norm", model.qk_norm, "none",
         "normalization of the queries and keys of each attention head, behind their projections "
         "and before biases of positions, as ln or rmsnorm; none: they have no site",
         .use = &of_model, .value = "NORM"),

    REAL(MODEL, "dropout", model.dropout, "nan", 0, 0.99, "", "residual dropout; nan: the preset's",
         .use = &of_model),
    REAL(MODEL, "attention-dropout", model.attention_dropout, "nan", 0, 0.99, "",
         "of attention weights; nan: the preset's", .use = &of_model),
    REAL(MODEL, "relu-dropout", model.relu_dropout, "nan", 0, 0.99, "",
         "behind the ReLU of an FFN; nan: the preset's", .use = &of_model),
    FLAG(MODEL, "count-padding", model.count_padding, "no",
         "texts: control experiment, padded rows take part in every normalization",
         .use = &of_model),

    CHOICE(MODEL, "positions", model.positions, "", "sinusoidal|none",
           "transformer_classifier: what is added to the embedding; empty: the preset's",
           .use = &of_model),
    CHOICE(MODEL, "pooling", model.pooling, "", "mean|cls",
           "transformer_classifier: mean over the words, or row of <s> (--mark-start); empty: the "
           "preset's",
           .use = &of_model),
    CHOICE(MODEL, "lm-mask", model.lm_mask, "causal", "causal|released",
           "language models: what a position sees; released: no mask, as the released tensorized "
           "transformer, so that every position sees its own target",
           .use = &of_model),
    TEXT(
        MODEL, "adaptive-cutoffs", model.adaptive_cutoffs, "",
        "tensorized: softmax in clusters of the dictionary, as in 4000,12000; none: in one; empty: "
        "the preset's",
        .use = &of_model),
    INT(MODEL, "core-number", model.core_number, "0", 1, 64, "cores",
        "tensorized: core vectors, whose mean counts; 0: the preset's", .use = &of_model),
    INT(MODEL, "mem-len", model.mem_len, "0", 1, 1 << 20, "rows",
        "transformer_xl: memory of each layer in training; 0: none", .use = &of_model),
    INT(MODEL, "eval-mem-len", model.eval_mem_len, "0", 1, 1 << 20, "rows",
        "transformer_xl: the same in evaluation; 0: none", .use = &of_model),
    INT(MODEL, "clamp-len", model.clamp_len, "0", 1, 1 << 20, "tokens",
        "transformer_xl: distances beyond it count as it; 0: none do", .use = &of_model),
    INT(MODEL, "eval-clamp-len", model.eval_clamp_len, "0", 1, 1 << 20, "tokens",
        "transformer_xl: the same in evaluation; 0: clamp-len", .use = &of_model),
    FLAG(MODEL, "same-length", model.same_length, "no",
         "transformer_xl: in evaluation every token sees eval-mem-len tokens, its own among them",
         .use = &of_model),

    INT(MODEL, "word-dim", model.word_dim, "0", 1, 65536, "",
        "tener: width of a word's vector; 0: the preset's", .use = &of_model),
    TEXT(MODEL, "word-vectors", model.word_vectors, "",
         "tener: file of pretrained vectors, plain or .gz, a word and word-dim numbers on each "
         "line, as GloVe's; empty: random ones",
         .use = &of_model, .value = "FILE"),
    CHOICE(MODEL, "char-encoder", model.char_encoder, "", "cnn|transformer|none",
           "tener: what makes features of a word's characters; empty: the preset's",
           .use = &of_model),
    INT(MODEL, "hidden-dim", model.hidden_dim, "0", 1, 65536, "",
        "mlp_parser: units of the hidden layer; 0: the preset's", .use = &of_model),
    CHOICE(MODEL, "activation", model.activation, "", "relu|cube|tanh",
           "mlp_parser: behind the norm of the hidden layer; empty: the preset's",
           .use = &of_model),
    CHOICE(
        MODEL, "conv", model.conv, "winograd", "winograd|direct",
        "3 x 3 convolutions of stride 1: by minimal filtering where it is faster, or as they are "
        "written",
        .use = &of_model),
    FLAG(MODEL, "conv-norms", model.conv_norms, "no",
         "mnist_cnn: normalizations behind its convolutions too", .use = &of_model),

    CHOICE(MODEL, "init", model.init, "he", "he|pytorch",
           "images: convolutions by He's rule N(sqrt(2/fan_in)), or all layers as PyTorch has them "
           "by default, uniform within 1/sqrt(fan_in)",
           .use = &of_model),
    CHOICE(MODEL, "linear-init", model.linear_init, "", "xavier|fan-in",
           "linear layers: Xavier's rule, or U(1/sqrt(fan_in)); empty: the preset's, else xavier",
           .use = &of_model),
    REAL(MODEL, "embed-std", model.embed_std, "nan", 1e-6, 1e6, "",
         "transformer: standard deviation of an embedding's entries as they are drawn; nan: "
         "1/sqrt(embed-dim)",
         .use = &of_model),
    TEXT(MODEL, "weights", weights, "",
         "checkpoint X.ckpt or NumPy archive X.npz whose weights the run starts from",
         .value = "FILE"),
    REAL(MODEL, "label-smoothing", label_smoothing, "nan", 0, 0.99, "",
         "mass that is taken off the targets; nan: 0.1 for sentence pairs, else 0"),
    CHOICE(MODEL, "smoothing-form", smoothing_form, "all", "all|others",
           "smoothing mass on all classes (eps/V) or on the others (eps/(V-1))",
           .use = &of_smoothing),
};

const option_table config_model_first = {first, sizeof first / sizeof first[0]};
const option_table config_model = {rows, sizeof rows / sizeof rows[0]};
