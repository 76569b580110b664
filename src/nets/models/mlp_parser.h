/* mlp_parser.h -- the parser's network, for its own files. */
#ifndef NETS_MODELS_MLP_PARSER_H
#define NETS_MODELS_MLP_PARSER_H

#include "engine/ops/ops.h"
#include "nets/layers/layers.h"
#include "nets/models.h"

enum { PARSER_TABLES = 3 }; /* words, POS tags, labels */

typedef enum { ACTIVATION_RELU, ACTIVATION_CUBE, ACTIVATION_TANH } activation;

typedef struct mlp_parser {
    int64_t d, hidden, classes;
    double dropout;
    activation activation;
    int tables;
    feature_table table[PARSER_TABLES];
    int64_t features; /* columns of all of them */
    linear_layer in, out;
    norm_site *norm;
} mlp_parser;

tensor *mlp_parser_activate(const mlp_parser *net, tape *t, tensor *x);
extern const model_scorer mlp_parser_scorer;

#endif
