#: title what sentence lengths, padding and row positions explain of the distance between batch and running mean
#: question running
#: runs 1-16 RUN.h5 [MORE.h5...]
#: samples nlp_bn_bucketed nlp_bn_random
#: size 6.75 1.5
#: site first
#: table t stat-batchmix {run} --site {site}
#: table? w stat-tid {runs} --stat mean --site {site}
# A row per run, in the given order. Left: percentage of ||mu_B - mu||^2 that one part explains, with intervals
# over the steps of the run; the part of the position encoding is exact, those of length and padding are regressions out of
# sample. Grey: the same regression on lengths and padding moved in time, which is what nothing looks like. Right: mean TID
# as it is and without the parts. "Together" is without position where the site has none recorded; images have no parts.

of_part(name, c) = strcol(t_part) eq name ? cell(c) : NaN
# Above or below the middle of the run's row, so that no point hides another.
at(shift) = column(-2) + 1 + shift
array has_position[runs]
do for [r=1:runs] { has_position[r] = 0 }
stats t using (has_position[int(column(-2))+1] = has_position[int(column(-2))+1] || (strcol(t_part) eq 'position'), 1) nooutput name 'RUN'
together(c) = of_part(has_position[int(column(-2))+1] ? 'position+length+padding' : 'length+padding', c)

eval span('t', 't_low')
low = span_count > 0 && span_low < 0 ? span_low : 0
eval span_of('t', 't_control_low', 'of_part("length+padding", t_control_low)')
control = span_count > 0
if (control && span_low < low) { low = span_low }
eval span('t', 't_tid')
tid_high = span_count > 0 ? span_high : 1
dot_count = runs
do for [r=1:runs] { dot_name[r] = run_label[r] }
array texts[6] = ['as it is', 'position', 'length', 'padding', 'together', 'control']
array types[6] = [957, 951, 952, 956, 953, 960]
set linetype 960 linecolor rgb look_colour[8] linewidth 6 dashtype solid
legend_count = control ? 6 : 5
do for [i=1:legend_count] {
    legend_text[i] = texts[i]
    legend_type[i] = types[i]
    legend_mark[i] = i < 6 ? 1 : 0
}
eval LEGEND_ROOM
eval DOT_ROOM
eval SIDE_BY_SIDE(2)
set errorbars 0
set datafile missing NaN
# Points of a part where any run has it: gnuplot warns of a curve without points.
array kind[6] = ['none', 'position', 'length', 'padding', 'together', '']
taken(i, c) = i == 5 ? together(c) : of_part(kind[i], c)
shares = 'NaN notitle'
tids = 'NaN notitle'
if (control) {
    shares = shares.", t using (100*of_part('length+padding', t_control_low)):(at(0)):". \
        "(100*(cell(t_control_high)-cell(t_control_low))):(0) with vectors nohead linetype 960"
}
do for [i=1:5] {
    eval span_of('t', 't_share', sprintf('taken(%d, t_share)', i))
    if (i > 1 && span_count > 0) {
        shares = shares.sprintf(", t using (100*taken(%d, t_share)):(at(%g)):(100*cell(t_low)):(100*cell(t_high)) ", i, 0.18*(i-3)). \
            sprintf("with xerrorbars linetype %d linewidth 0.8 dashtype solid", types[i])
    }
    eval span_of('t', 't_tid', sprintf('taken(%d, t_tid)', i))
    if (span_count > 0) {
        tids = tids.sprintf(", t using (100*taken(%d, t_tid)):(at(%g)) with points linetype %d", i, 0.18*(i-3), types[i])
    }
}

set multiplot
eval dot_panel(1, 2)
set xlabel '||μ_B − μ||^2 explained (%)' offset 0,0.7
set xrange [100 * low - 4:104] noextend
eval sprintf('set xtics %g', low < -1 ? -200 * low / 4 : 25)
set arrow from first 0, graph 0 to first 0, graph 1 nohead linetype 958 linewidth 0.5 dashtype solid back
eval 'plot '.shares
unset arrow
eval dot_panel(2, 2)
set xlabel 'mean TID that is left (%)' offset 0,0.7
set xrange [0:106 * tid_high] noextend
eval sprintf('set xtics %g', tic_step(106 * tid_high, 5))
eval 'plot '.tids
eval LEGEND_DRAW
unset multiplot
