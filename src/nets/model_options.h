/* model_options.h -- the options of models: one field per option of `statrec train`. */
#ifndef NETS_MODEL_OPTIONS_H
#define NETS_MODEL_OPTIONS_H

#include "norm/norm_options.h"

enum { MODEL_TEXT = 512 };

typedef struct model_options {
    char name[MODEL_TEXT];         /* row of the table: "resnet20" */
    char preset[MODEL_TEXT];       /* "" or a preset of that model */
    char norm[MODEL_TEXT];         /* as "brn(r_max=3)+ls": every site, or encoder sites */
    char decoder_norm[MODEL_TEXT]; /* transformer: decoder sites */
    char norm_at[MODEL_TEXT];      /* "SITES=METHOD,...", first match wins, before the two above */
    double norm_eps,
        norm_alpha;      /* NaN: the method's default (alpha: the model's, if the model has one) */
    int64_t layer_scale; /* groups; 0: of METHOD+ls or the method */
    char norm_param[NORM_OPTION_MAX]
                   [MODEL_TEXT]; /* values of norm_option_at(i); "": the method's default */
    bool count_padding;          /* transformer, control: normalizations include padded rows */
    char init[MODEL_TEXT];       /* images: "he" or "pytorch"; "" = he */
    char conv[MODEL_TEXT];       /* images: "winograd" (or ""), "direct": how op_conv2d sums */
    bool conv_norms;             /* mnist_cnn: norms after the convolutions too */
    /* transformer; 0 or NaN: of the preset */
    int64_t embed_dim, ffn_dim, heads, encoder_layers, decoder_layers;
    char placement[MODEL_TEXT]; /* "pre", "post", "peri", "scaled" or "" = the preset's */
    char qk_norm[MODEL_TEXT]; /* method of the queries and keys of each head; "" or "none": none */
    double dropout, attention_dropout, relu_dropout;
    char linear_init[MODEL_TEXT]; /* "xavier", "fan-in"; "" = the preset's */
    double embed_std;             /* of entries of the embedding; NaN: 1/sqrt(d) */
    int64_t key_size, value_size; /* sizes of an attention head; 0: the preset's */
    char pooling[MODEL_TEXT];     /* classifiers: "mean", "cls"; "" = the preset's */
    char positions[MODEL_TEXT];   /* classifiers: "sinusoidal", "none"; "" = the preset's */
    /* language models; 0 or "": of the preset. layers: of resnet20 too */
    int64_t layers, head_dim, core_number;
    char lm_mask[MODEL_TEXT];          /* "causal" (or ""), "released": none */
    char adaptive_cutoffs[MODEL_TEXT]; /* "4000,12000", "none" */
    /* transformer_xl: rows of memory, and the distance that greater ones count as; 0: none, of
     * eval_clamp_len: clamp_len. same_length: in evaluation every query sees eval_mem_len keys. */
    int64_t mem_len, eval_mem_len, clamp_len, eval_clamp_len;
    bool same_length;
    /* parsers; 0 or "": of the preset */
    int64_t hidden_dim;
    char activation[MODEL_TEXT];   /* "relu", "cube", "tanh" */
    char word_vectors[MODEL_TEXT]; /* tener: file of the initial word embedding, or "" */
    int64_t word_dim;              /* tener: width of a word's vector; 0: the preset's */
    char char_encoder[MODEL_TEXT]; /* tener: "cnn", "transformer", "none" or "" = the preset's */
    uint64_t seed;
    int64_t
        most_parameters; /* limit on their values, from the file to be read (params.h); 0: none */
} model_options;

#endif
