/* model_mlp_parser.c -- classifier of a parser's transitions (docs/models.md 8): Chen and Manning,
 * EMNLP 2014, with a normalization of its hidden layer, as AN trains it.
 *
 *   x = (E_word[18 words], E_pos[18 POS tags], E_label[12 labels])     concatenated, d wide each
 *   h = drop(f(norm(W1 x + b1)))                                       f: relu, cube or tanh
 *   logits = W2 h + b2                                                 of all transitions
 *
 * Illegal transitions have logits too. Without labels there are 36 features, none of labels.
 * Initial values: embeddings U(0.01) as in the source, linear layers uniform within 1/sqrt(inputs).
 * The source draws the latter within 0.01, too. It has no norm and drops units after the cube:
 * preset chen-manning uses norm none.
 *
 * Site: hidden. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nets/model_rows.h"
#include "nets/models/mlp_parser.h"

/* Positions of a state with a word and a POS tag, and those that may have a label. */
enum { POSITIONS = 18, CHILDREN = 12 };

typedef struct preset {
    const char *name;
    int64_t d, hidden;
    double dropout;
    activation activation;
} preset;

/* AN's settings, Chen and Manning's; AN's for two shared data sets. */
static const preset presets[] = {
    {"adanorm", 50, 512, 0.2, ACTIVATION_RELU},
    {"chen-manning", 50, 200, 0.5, ACTIVATION_CUBE},
    {"ptb-sample", 50, 512, 0.2, ACTIVATION_RELU},
    {"ud-ewt", 50, 512, 0.2, ACTIVATION_RELU},
};

static sr_status choose_size(mlp_parser *net, const model_options *o, const data_shape *shape,
                             sr_failure *why) {
    const preset *base = MODEL_PRESET(model_mlp_parser, o->preset, presets, why);
    if (!base) return SR_USAGE;
    net->d = model_size(o->embed_dim, base->d);
    net->hidden = model_size(o->hidden_dim, base->hidden);
    net->dropout = model_default(o->dropout, base->dropout);
    net->classes = shape->classes;
    net->activation = !strcmp(o->activation, "relu")   ? ACTIVATION_RELU
                      : !strcmp(o->activation, "cube") ? ACTIVATION_CUBE
                      : !strcmp(o->activation, "tanh") ? ACTIVATION_TANH
                                                       : base->activation;
    return SR_OK;
}

static void add_table(model *m, mlp_parser *net, const char *name, int64_t rows, int64_t columns) {
    tensor *table = params_add(&m->params, name, 2, (int64_t[]){rows, net->d}, INIT_UNIFORM, 0.01);
    net->table[net->tables++] = (feature_table){table, columns};
    net->features += columns;
}

static layer_init within_inputs(int64_t in) {
    return (layer_init){INIT_UNIFORM, 1 / sqrt((double)in)};
}

static sr_status mlp_parser_build(model *m, const model_options *o, const data_shape *shape,
                                  sr_failure *why) {
    mlp_parser *net = m->self;
    const sr_status status = choose_size(net, o, shape, why);
    if (status != SR_OK) return status;
    add_table(m, net, "embedding.word", shape->vocabulary, POSITIONS);
    add_table(m, net, "embedding.pos", shape->pos_tags, POSITIONS);
    if (shape->arc_labels) add_table(m, net, "embedding.label", shape->arc_labels, CHILDREN);
    const int64_t inputs = net->features * net->d;
    net->in = linear_init(&m->params, "hidden_layer", inputs, net->hidden, within_inputs(inputs),
                          within_inputs(inputs));
    net->norm = model_add_site(m, o, "hidden", "hidden", net->hidden, o->norm, why);
    net->out = linear_init(&m->params, "classify", net->hidden, net->classes,
                           within_inputs(net->hidden), within_inputs(net->hidden));
    m->embedding = m->target_embedding = net->table[0].rows;
    return why && why->status != SR_OK ? why->status : m->params.failure.status;
}

/* [count, classes] */
static tensor *mlp_parser_forward(model *m, pass *p) {
    const mlp_parser *net = m->self;
    const batch *b = p->batch;
    tape *t = p->tape;
    if (b->features != net->features)
        return tape_fail(t, SR_USAGE, "model mlp_parser has %lld features, not %lld",
                         (long long)net->features, (long long)b->features);
    const norm_rows *rows = pass_rows(p, b->count, 1, NULL);
    if (!rows) return NULL;
    tensor *x = op_feature_embedding(t, net->table, net->tables, b->feature, b->count);
    x = op_linear(t, x, norm_weight(net->norm, t, net->in.w), net->in.b);
    x = mlp_parser_activate(net, t, norm_apply(net->norm, t, x, rows));
    return linear_apply(&net->out, t, op_dropout(t, x, net->dropout));
}

const model_row model_mlp_parser = {
    .name = "mlp_parser",
    .citation = "Chen and Manning, EMNLP 2014",
    .summary = "parser transitions from words, POS tags and labels, one hidden layer",
    .task = TASK_TREES,
    .presets = "adanorm|chen-manning|ptb-sample|ud-ewt",
    .options = "embed-dim hidden-dim activation dropout",
    .build = mlp_parser_build,
    .forward = mlp_parser_forward,
    .size = sizeof(mlp_parser),
    .scorer = &mlp_parser_scorer,
};
