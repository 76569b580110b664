#: title power and variance of the sites' inputs by depth (Peri-LN, Curse of Depth)
#: question features
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn nlp_pn
#: size 6.75 2.4
#: controls y scale steps
#: site *
#: choice right variance|kurtosis|mean_share what the right panel draws: variance, outlier features, or the fraction of power in the mean direction
#: choice parts 4|1|2|8 equal parts of training, each by its medians
#: table d stat-depth {run} --site {site} --phase {steps} --parts {parts}
#: curves d by part x depth y power,{right}
# Medians over the recorded steps of a part of training. One run: every part; several: thin the first part, thick the
# last. Power is the mean over features of the mean square of a site's input, variance that of its variance.

d_right = value(sprintf('d_%s', right))
right_least = value(sprintf('d_%s_positive', right))
right_largest = value(sprintf('d_%s_largest', right))
array shown[d_curves]
array thick[d_curves]
array first_part[runs]
array last_part[runs]
do for [r=1:runs] {
    first_part[r] = 0
    last_part[r] = 0
}
eval span('d', 'd_x')
deepest = span_high
shallowest = span_low
do for [k=1:d_curves] {
    eval span(sprintf('d index %d', k - 1), 'd_power')
    left_values = span_count
    eval span(sprintf('d index %d', k - 1), 'd_right')
    shown[k] = left_values + span_count > 0
    if (shown[k]) {
        last_part[d_run[k]] = k
        if (first_part[d_run[k]] == 0) { first_part[d_run[k]] = k }
    }
}
any_shown = 0
two_parts = 0
do for [r=1:runs] {
    any_shown = any_shown || last_part[r] > 0
    two_parts = two_parts || last_part[r] > first_part[r]
}
if (!any_shown) { eval refuse('no finite power or '.right.' of a site') }
of_part(k) = sprintf('%.3g to %.3g %% of %s', 100.0 * (d_key[k] - 1) / parts, 100.0 * d_key[k] / parts, steps eq 'all' ? 'training' : 'these steps')
do for [k=1:d_curves] {
    thick[k] = runs == 1 || k == last_part[d_run[k]]
    shown[k] = shown[k] && (runs == 1 || thick[k] || k == first_part[d_run[k]])
    if (runs == 1 && shown[k]) {
        legend_count = legend_count + 1
        legend_text[legend_count] = of_part(k)
        legend_type[legend_count] = 950 + (k - 1) % 8 + 1
        legend_mark[legend_count] = 2
    }
}
if (runs > 1) {
    legend_count = runs
    do for [r=1:runs] {
        legend_text[r] = run_label[r]
        legend_type[r] = r
        legend_mark[r] = 2
    }
    if (two_parts) {
        legend_count = legend_count + 1
        legend_text[legend_count] = sprintf('thin: first recorded 1/%d of %s', int(parts), steps eq 'all' ? 'training' : 'these steps')
        legend_type[legend_count] = 958
    }
}
eval LEGEND_ROOM
pad_left = 0.72
gap_x = 0.85
set pointsize 0.4
kind(k) = runs == 1 ? 950 + (k - 1) % 8 + 1 : d_run[k]
width(k) = thick[k] ? 1.1 : 0.5
size(k) = thick[k] ? 0.4 : 0.01
label_of(q) = q eq 'variance' ? 'variance, mean over features' : q eq 'kurtosis' ? 'kurtosis over features' : 'fraction of power in the mean'
set xlabel 'depth of the site, from the input' offset 0,0.7
room_x = deepest > shallowest ? 0.03 * (deepest - shallowest) : 0.5
set xrange [shallowest - room_x:deepest + room_x] noextend
set xtics autofreq
eval sprintf('set xtics %d', deepest - shallowest < 9 ? 1 : tic_step(deepest - shallowest, 8))

eval SIDE_BY_SIDE(2)
set multiplot
eval panel(1, 2, 1, 1)
eval log_y(d_power_positive, d_power_largest)
set ylabel 'power, mean over features' offset 0.2,0
plot NaN, for [k=1:d_curves] d index k-1 using d_x:(shown[k] ? column(d_power) : NaN) with linespoints linetype kind(k) linewidth width(k) pointsize size(k)
eval panel(2, 2, 1, 1)
if (right eq 'mean_share') { eval axis_y('linear', right_least, 1 / 1.06) } else { eval log_y(right_least, right_largest) }
set ylabel label_of(right) offset 0.2,0
plot NaN, for [k=1:d_curves] d index k-1 using d_x:(shown[k] ? column(d_right) : NaN) with linespoints linetype kind(k) linewidth width(k) pointsize size(k)
eval LEGEND_DRAW
unset multiplot
