/* preset_texts.c -- what each preset of a model is of. */
#include "train/train.h"

/* "Published": the sizes and settings of the source; the others are cut down for two cores. */
static const train_preset presets[] = {
    {"resnet18", "resnet18", "published form for small images: 64 to 512 filters, 200 epochs"},
    {"resnet18", "mini", "a quarter of the published filters, 16 to 128; two cores: 20 minutes"},
    {"transformer", "mini",
     "d 128, 4 heads, FFN 256, 3 + 3 layers; two cores: a quarter of an hour"},
    {"transformer", "transformer", "published base: d 512, 8 heads, FFN 2048, 6 + 6 layers"},
    {"transformer", "transformer_iwslt_de_en", "published for IWSLT14: d 512, 4 heads, FFN 1024"},
    {"transformer", "transformer_big", "published for WMT14: d 1024, 16 heads, FFN 4096"},
    {"tensorized", "ptb", "published core-1 for PTB: 3 layers, d 256, R 40, window 32"},
    {"tensorized", "wikitext-103",
     "published core-1 for WikiText-103: 6 layers, window 80, adaptive softmax"},
    {"tensorized", "ptb-mini", "2 layers, d 128, R 32, window 20; two cores: 10 minutes"},
    {"tensorized", "wikitext-2",
     "2 layers, d 128, R 32, window 32, adaptive softmax; two cores: 10 minutes"},
    {"transformer_lm", "ptb", "of tensorized's ptb in depth and width, dot-product attention"},
    {"transformer_lm", "ptb-mini", "of tensorized's ptb-mini; two cores: 10 minutes"},
    {"transformer_lm", "wikitext-2", "of tensorized's wikitext-2; two cores: 10 minutes"},
    {"transformer_classifier", "rt",
     "published by AN for RT: pre-norm, 4 layers, d 128; two cores: 10 minutes"},
    {"transformer_classifier", "sst5", "of rt, files of SST-5; two cores: 10 minutes"},
    {"transformer_classifier", "imdb",
     "published by RBN: one post-norm layer, d 32, texts of 512 words"},
    {"transformer_classifier", "imdb-mini", "of imdb, texts of 256 words; two cores: 10 minutes"},
    {"tener", "conll2003", "published: 2 layers, 14 heads of 128, SGD, 100 epochs"},
    {"tener", "resume", "published for the Chinese Resume set: 2 layers, 4 heads of 64, 50 epochs"},
    {"tener", "conll2003-mini",
     "2 layers, 4 heads of 32, Adam, 15 epochs; two cores: half an hour"},
    {"transformer_xl", "enwik8", "published: 12 layers, d 512, memory 512, 400,000 updates"},
    {"transformer_xl", "enwik8-mini",
     "4 layers, d 128, memory 64, 6,000 updates; two cores: half an hour"},
    {"mlp_parser", "adanorm", "published by AN: hidden 512, relu, batch 1024, dropout 0.2, Adam"},
    {"mlp_parser", "chen-manning", "published: hidden 200, cube, no norm, dropout 0.5, AdaGrad"},
    {"mlp_parser", "ptb-sample",
     "of adanorm, files of the 10 % sample of the Penn Treebank; two cores: 5 minutes"},
    {"mlp_parser", "ud-ewt", "of adanorm, files of UD English EWT; two cores: 10 minutes"},
};

const train_preset *train_preset_at(int i) {
    return i >= 0 && i < (int)(sizeof presets / sizeof presets[0]) ? &presets[i] : NULL;
}
