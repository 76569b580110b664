#: title PowerNorm figure 5: validation metric against the size of the micro-batch
#: question papers
#: runs 1- RUN.h5 [MORE.h5...]
#: samples figures/bn_128 nlp_bn_256 nlp_bn figures/ln_128 nlp_ln_256 nlp_ln
#: size 3.25 2.4
#: tasks one
#: controls y scale
#: metric valid_ppl
#: table b stat-batch {runs} --metric {metric}
#: table u stat-batch {runs} --metric {metric}
#: curves b by norm,model,data x micro_batch y mean,least,largest
# A line per normalization (of one model and data set): mean over the runs of each size (seeds) at their last
# evaluation; bars: smallest and largest. The paper's metric is BLEU of a translation model.

# A legend without the words that all curves have in common: "NORM MODEL DATA".
first(text) = strstrt(text, ' ') ? text[1:strstrt(text, ' ')-1] : text
rest(text) = text[strlen(first(text))+1:*]
alike = 1
do for [k=2:b_curves] { if (!(rest(b_key[k]) eq rest(b_key[1]))) { alike = 0 } }
legend_count = b_curves
do for [k=1:b_curves] {
    legend_text[k] = alike ? first(b_key[k]) : b_key[k]
    legend_type[k] = k
}
eval LEGEND_ROOM

stats b using b_x nooutput name 'SIZE'
set logscale x 2
set xrange [SIZE_min / 1.3:SIZE_max * 1.3] noextend
set format x '%g'
set xlabel 'micro-batch (tokens or images)' offset 0,0.7
stats u using (unit_of = strcol(u_unit), better_of = strcol(u_better), 1) nooutput name 'UNIT'
set ylabel with_better(metric, unit_of, better_of) noenhanced offset 0.2,0
set pointsize 0.5

set multiplot
eval panel(1, 1, 1, 1)
eval of_unit(unit_of)
eval linear_y(b_least_least, b_largest_largest)
plot for [k=1:b_curves] b index k-1 using b_x:b_mean:b_least:b_largest with yerrorbars linetype k dashtype solid, \
     for [k=1:b_curves] b index k-1 using b_x:b_mean with lines linetype k
unset label
eval LEGEND_DRAW
unset multiplot
