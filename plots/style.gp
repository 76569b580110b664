# Shared look of the figures: sizes of paper columns, 8 point text, colours that colour-blind readers
# tell apart (Wong, Nature Methods 2011), one dash pattern per colour for print in grey.
# statplot has set: figure_width, figure_height (inches), runs, run_label[], run_full[], shared, and entries: as many
# as there are runs, published rows and curves together, room for whatever a figure lists.

# And what the user may change about any figure: figure_title, figure_note ('' without), figure_fixed (the size is the
# user's), figure_scale ('', 'log' or 'linear'), steps ('all' or FROM:TO), x_given, x_from, x_to and the same of y.

set encoding utf8
set datafile separator tab

# What a figure needs above the height that it asked for, unless the user wants a size.
grow(h) = figure_fixed ? figure_height : h
head_height = strlen(figure_title) ? 0.24 : 0
# A note that is too long for the figure goes on in further lines, behind a blank.
note_most = int((figure_width - 0.12) / 0.047)
note_end(text, n) = n < 2 ? note_most : text[n:n] eq ' ' ? n : note_end(text, n - 1)
note_folded(text) = strlen(text) <= note_most ? text : text[1:note_end(text, note_most)]."\n".note_folded(text[note_end(text, note_most)+1:*])
note_lines(text) = strlen(text) <= note_most ? 1 : 1 + note_lines(text[note_end(text, note_most)+1:*])
note_cut(text) = strstrt(text, "\n")
notes_folded(text) = note_cut(text) ? note_folded(text[1:note_cut(text)-1])."\n".notes_folded(text[note_cut(text)+1:*]) : note_folded(text)
notes_lines(text) = note_cut(text) ? note_lines(text[1:note_cut(text)-1]) + notes_lines(text[note_cut(text)+1:*]) : note_lines(text)
note_room(text) = strlen(text) ? 0.05 + 0.1 * notes_lines(text) : 0
note_height = note_room(figure_note)
figure_height = grow(figure_height + head_height + note_height)
eval terminal(figure_height)

# Runs have the same look in every figure of a report, also in those that leave some of them out: linetype n
# has look line_look[n]. 24 looks: eight colours, three times, each time with another dash pattern and another point.
look_count = 24
array look_colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#56B4E9', '#E69F00', '#000000', '#999999']
array look_dash[8] = ['solid', '(9,2)', '(3,2)', '(9,2,2,2)', '(5,2)', '(5,2,2,2)', '(2,4)', '(14,3)']
array look_point[24] = [7, 5, 9, 11, 13, 15, 2, 3,  4, 6, 10, 8, 14, 12, 1, 2,  8, 12, 6, 4, 1, 10, 5, 7]
look(n) = sprintf("lc rgb '%s' lw 0.9 dt %s pt %d", look_colour[1+(n-1)%8], look_dash[1+(n-1+3*int((n-1)/8))%8], look_point[n])
do for [n=1:look_count] { eval sprintf('set linetype %d ', n).look(line_look[n]) }
set linetype cycle look_count
# What a figure draws of one run, or of any (roles, not runs), has the first eight looks as linetypes 951 to 958.
do for [n=1:8] { eval sprintf('set linetype %d ', 950 + n).look(n) }
# What papers print: grey and hollow. published_type(g) for the g-th table: six shapes in three greys.
array published_shape[6] = [6, 4, 8, 10, 12, 14]
array published_grey[3] = ['#606060', '#000000', '#A0A0A0']
do for [n=1:18] {
    eval sprintf("set linetype %d lc rgb '%s' lw 0.5 dt (2,2) pt %d", 900 + n, published_grey[1+int((n-1)/6)], published_shape[1+(n-1)%6])
}
published_type(g) = 901 + (g - 1) % 18
set pointsize 0.3

set border 3 lc rgb '#404040' lw 0.5
set tics out nomirror scale 0.5,0.25 textcolor rgb '#202020'
set grid ytics lc rgb '#D8D8D8' lw 0.4 dt solid
set xtics offset 0,0.35
set key noautotitle
unset key

# -- panels ------------------------------------------------------------------------------------
# eval panel(column, columns, row, rows) puts the next plot there; all lengths in inches.
pad_left = 0.7
pad_right = 0.16
pad_bottom = 0.36
gap_x = 0.82
gap_y = 0.46
legend_height = 0.06
panel_width(n) = (figure_width - pad_left - pad_right - (n - 1) * gap_x) / n
panel_height(n) = (figure_height - head_height - note_height - legend_height - pad_bottom - (n - 1) * gap_y - (blocks - 1) * block_gap) / n
panel_left(i, n) = pad_left + (i - 1) * (panel_width(n) + gap_x)
panel_bottom(i, n) = note_height + pad_bottom + (n - i) * (panel_height(n) + gap_y) + (2 * i <= n ? (blocks - 1) * block_gap : 0)
too_small(cs, rs) = panel_width(cs) < 0.3 || panel_height(rs) < 0.2
panel_at(c, cs, r, rs) = (too_small(cs, rs) ? refuse('--size leaves no room for the panels').'; ' : '').sprintf('set lmargin at screen %.5f; set rmargin at screen %.5f; '. \
    'set bmargin at screen %.5f; set tmargin at screen %.5f', \
    panel_left(c, cs) / figure_width, (panel_left(c, cs) + panel_width(cs)) / figure_width, \
    panel_bottom(r, rs) / figure_height, (panel_bottom(r, rs) + panel_height(rs)) / figure_height)
panel(c, cs, r, rs) = (rs == 1 && cs == stacked ? panel_at(1, 1, c, cs) : blocks == 2 ? panel_at(1 + (c - 1) % (cs / 2), cs / 2, r + (2 * c > cs ? rs : 0), 2 * rs) : \
    panel_at(c, cs, r, rs))
# A page that is too narrow for a figure makes it higher, unless the user wants a size; behind pads and legend:
# eval SIDE_BY_SIDE(n): n panels in a row come one below the other.
# eval GRID(columns, rows): the right half of the columns comes below the left half. begins_row(c, columns): c is the first then.
stacked = 0
blocks = 1
block_gap = 0.4
narrowest = 1.1
narrow(n, least) = n > 1 && !figure_fixed && panel_width(n) < least
SIDE_BY_SIDE(n) = sprintf('stacked = %d; if (stacked) { figure_height = grow(figure_height + %d * (panel_height(1) + gap_y)); eval terminal(figure_height) }', \
    narrow(n, narrowest) ? n : 0, n - 1)
GRID(cs, rs) = narrow(cs, 0.6) ? sprintf('figure_height = grow(figure_height + %d * (panel_height(%d) + gap_y) + block_gap); blocks = 2; eval terminal(figure_height)', rs, rs) : ''
begins_row(c, cs) = c == 1 || (blocks == 2 && 2 * c == cs + 2)

# eval NOTE(text), before LEGEND_ROOM: lines of the figure's own below the user's note. eval LEFT_OUT('t'): names the sites that have no
# row in table t, unless the user chose sites.
add_note(text) = (figure_height = grow(figure_height - note_height), figure_note = figure_note.(strlen(figure_note) ? "\n" : "").text, \
    note_height = note_room(figure_note), figure_height = grow(figure_height + note_height))
NOTE(text) = strlen(text) == 0 ? '' : (note_added = add_note(text), 'eval terminal(figure_height)')
LEFT_OUT(t) = 'left_text = ""; left_same = 1; do for [r=2:runs] { if (!('.t.'_left_out[r] eq '.t.'_left_out[1])) { left_same = 0 } }; '. \
    'do for [r=1:(left_same ? 1 : runs)] { if (strlen('.t.'_left_out[r]) > 0) { left_text = left_text.(strlen(left_text) ? "; " : "sites without values: "). \
    (left_same ? "" : run_label[r].": ").'.t.'_left_out[r] } }; eval NOTE(site eq "*" ? left_text : "")'

# eval refuse(text): statplot ends with this text when there is nothing to draw.
refuse(text) = (refused = text, 'printerr refused; exit status 1')

# Metrics as readers know them: "validation loss (nats)"; with the direction behind: "validation perplexity ↓".
short_unit(u) = u[1:4] eq 'nats' ? ' (nats)' : u eq 'percent' ? ' (%)' : u eq '1' || u eq '' ? '' : ' ('.u.')'
# Losses of the runs have the unit of their valid_loss, several as ' (nats or m^2)'; what programs with another unit train on has none.
valid_units = run_loss_unit[1]
do for [r=2:runs] { if (strstrt(' or '.valid_units.' or ', ' or '.run_loss_unit[r].' or ') == 0) { valid_units = valid_units.' or '.run_loss_unit[r] } }
valid_unit = strstrt(valid_units, ' or ') ? ' ('.valid_units.')' : short_unit(valid_units)
train_unit = valid_units eq 'nats' ? ' (nats)' : ''
plain_name(m) = m eq 'ppl' ? 'perplexity' : m eq 'nll' ? 'negative log-likelihood' : m eq 'bleu' ? 'BLEU' : m eq 'f1' ? 'F1' : \
    m eq 'bpc' ? 'bits per byte' : m eq 'top5' ? 'top-5 accuracy' : m eq 'uas' ? 'UAS' : m eq 'las' ? 'LAS' : \
    m eq 'uas_nopunct' ? 'UAS without punctuation' : m eq 'las_nopunct' ? 'LAS without punctuation' : m
one_metric(m) = m[1:6] eq 'valid_' ? 'validation '.plain_name(m[7:*]) : m[1:5] eq 'test_' ? 'test '.plain_name(m[6:*]) : plain_name(m)
metric_name(m) = strlen(m) > 6 && m[strlen(m)-5:*] eq '_batch' ? one_metric(m[1:strlen(m)-6]).', batch statistics' : one_metric(m)
with_unit(m, u) = metric_name(m).short_unit(u)
# better: "less", "more" or "", as the runs declare it. Papers declare nothing: of their perplexities and bits less is.
with_better(m, u, better) = with_unit(m, u).(better eq 'less' ? ' ↓' : better eq 'more' ? ' ↑' : '')
of_paper(m) = with_better(m, '', m eq 'ppl' || m eq 'bpc' ? 'less' : 'more')
# Recorded statistics: "variance TID". The paper's variance TID is of deviations: ||sigma_B - sigma|| / ||sigma||.
stat_name(s) = s eq 'tid_mean' ? 'mean TID' : s eq 'tid_var' ? 'variance TID' : s eq 'tid_total' ? 'total TID' : \
    s eq 'dist_mu' ? 'distance of μ' : s eq 'dist_sigma2' ? 'distance of σ²' : s eq 'dist_sigma' ? 'distance of σ' : \
    s eq 'dist_psi2' ? 'distance of ψ²' : s eq 'dist_psi' ? 'distance of ψ' : \
    s eq 'g_mu' ? 'gradient through μ' : s eq 'g_sigma2' ? 'gradient through σ²' : s eq 'g_psi2' ? 'gradient through ψ²' : \
    s eq 'row_grad_mean' ? 'mean of dx' : s eq 'row_grad_var' ? 'variance of dx' : s eq 'rows' ? 'rows of the batch' : \
    s eq 'nonfinite' ? 'values not finite' : s eq 'lr' ? 'learning rate' : s eq 'grad_norm' ? 'gradient norm' : \
    s eq stat && stat_own ? cut(s.own_unit(stat_unit), 34) : s
# Vectors and what compares them with running values, as enhanced text. enhanced_safe(text): names from run files in it.
vector_name(v) = v eq 'mu_B' ? 'batch mean {/:Italic μ_B}' : v eq 'sigma2_B' ? 'batch variance {/:Italic σ_B}^2' : \
    v eq 'psi2_B' ? 'batch mean square {/:Italic ψ_B}^2' : v eq 'mu' ? 'running mean {/:Italic μ}' : \
    v eq 'sigma2' ? 'running variance {/:Italic σ}^2' : v eq 'psi2' ? 'running mean square {/:Italic ψ}^2' : \
    v eq 'gamma' ? 'gain {/:Italic γ}' : v eq 'sum_g' ? 'sum of {/:Italic g}' : v eq 'sum_gx' ? 'sum of {/:Italic g x̂}' : \
    v eq 'mu_difference' ? '{/:Italic μ_B} − {/:Italic μ}' : v eq 'sigma2_difference' ? '{/:Italic σ_B}^2 − {/:Italic σ}^2' : \
    v eq 'psi2_difference' ? '{/:Italic ψ_B}^2 − {/:Italic ψ}^2' : v eq 'mu_shift' ? '({/:Italic μ_B} − {/:Italic μ}) / {/:Italic σ}' : \
    v eq 'sigma_ratio' ? '{/:Italic σ_B} / {/:Italic σ}' : v eq 'psi_ratio' ? '{/:Italic ψ_B} / {/:Italic ψ}' : enhanced_safe(v)
enhanced_safe(text) = strlen(text) == 0 ? '' : (strstrt('{}^_@&~\', text[1:1]) ? '\'.text[1:1] : text[1:1]).enhanced_safe(text[2:*])
# A name beside a tic is a format there: eval 'set ytics add (tic_text(name) 1)'. in_data(name): as strcol() reads it from a data file, which
# has no quotes.
replaced(text, these, by) = strlen(text) == 0 ? '' : (strstrt(these, text[1:1]) ? by : text[1:1]).replaced(text[2:*], these, by)
tic_text(name) = replaced(name, '%', '%%')
in_data(name) = replaced(name, '"#`'."'", ' ')
# What the runs declare is called what they call it, with its unit.
own_unit(u) = u eq 'percent' ? ' (%)' : u eq '1' || u eq '' ? '' : ' ('.u.')'

# Long labels lose their middle: what tells two runs apart is mostly at the end.
cut(text, most) = strlen(text) <= most ? text : text[1:most/3].'…'.text[strlen(text)-(most-most/3)+2:*]

# A run's label without its seed: what the runs of a group share.
from_comma(text) = strstrt(text, ',') > 0 ? text[strstrt(text, ','):*] : ''
unseeded(label) = strstrt(label, ', seed ') > 0 ? label[1:strstrt(label, ', seed ')-1].from_comma(label[strstrt(label, ', seed ')+2:*]) : label

# eval keep_apart('SHORT', 'TEXT', count, 'SHORTEN', 'TAIL'): SHORT[i] = SHORTEN(TEXT[i]) for i = 1 .. count. Where this makes two texts alike that
# are not, what they begin with is left out up to the part (between commas) in which one of them differs first, and TAIL shortens the
# end; what is alike even then has its number.
common(a, b, low, high) = low >= high ? low : a[1:(low+high+1)/2] eq b[1:(low+high+1)/2] ? common(a, b, (low + high + 1) / 2, high) : common(a, b, low, (low + high + 1) / 2 - 1)
word_begin(text, n) = n <= 1 ? 1 : text[n-1:n-1] eq ' ' ? n : word_begin(text, n - 1)
part_begin(text, n) = n <= 2 ? 1 : text[n-2:n-1] eq ', ' ? n : part_begin(text, n - 1)
keep_from(text, n) = n - part_begin(text, n) <= 16 ? part_begin(text, n) : word_begin(text, n)
from_difference(text, n) = keep_from(text, n) <= 1 ? text : '…'.text[keep_from(text, n):*]
array apart_word[entries + 8]
keep_apart(short, full, count, shorten, tail) = \
    'do for [i=1:'.count.'] { '.short.'[i] = '.shorten.'('.full.'[i]); apart_word[i] = 0 }; '. \
    'do for [i=1:'.count.'] { if (!('.short.'[i] eq '.full.'[i])) { do for [j=1:'.count.'] { '. \
    'if ('.short.'[j] eq '.short.'[i] && !('.full.'[j] eq '.full.'[i])) { '. \
    'at_ = common('.full.'[i], '.full.'[j], 0, strlen('.full.'[i])) + 1; '. \
    'apart_word[i] = apart_word[i] == 0 || at_ < apart_word[i] ? at_ : apart_word[i] } } } }; '. \
    'do for [i=1:'.count.'] { if (apart_word[i] > 0) { '.short.'[i] = '.tail.'(from_difference('.full.'[i], apart_word[i])) } }; '. \
    'do for [i=2:'.count.'] { if (apart_word[i] > 0) { do for [j=1:i-1] { '. \
    'if ('.short.'[j] eq '.short.'[i] && !('.full.'[j] eq '.full.'[i])) { '.short.'[i] = '.tail.'(sprintf("%d: ", i).'.short.'[i]) } } } }'

# eval span(data, column): span_count, span_low and span_high of the finite values of a column, as in
# eval span('t index 2', 't_loss'). eval span_of(data, column, value): of an expression that reads this column.
# cell(column): NaN where it has none. (`stats` alone warns when there is no finite value.) Before any range is set: stats leaves out what is outside.
finite(text) = !(text eq 'nan' || text eq '-nan' || text eq 'inf' || text eq '-inf')
cell(c) = finite(strcol(c)) ? column(c) : NaN
span_add(v) = v == v && abs(v) <= 1e300 ? (span_count = span_count + 1, \
    span_low = v < span_low ? v : span_low, span_high = v > span_high ? v : span_high, 1) : 1
span_of(data, c, v) = 'span_count = 0; span_low = 1e300; span_high = -1e300; stats '.data. \
    ' using (finite(strcol('.c.')) ? span_add('.v.') : 1) nooutput name "SPAN"'
span(data, c) = span_of(data, c, 'column('.c.')')

# -- axes --------------------------------------------------------------------------------------
# eval log_y(low, high): logarithmic from just below low to just above high. Powers of ten are labelled;
# below two decades 2 and 5 of each decade too, since there may be no power of ten in sight.
plain(low, high) = low >= 0.0009 && high <= 20000
several(e, m, short) = short ? sprintf('%g', m * 10.0**e) : (m == 1 ? '' : sprintf('%d·', m)).sprintf('10^{%d}', e)
exponent(v) = int(floor(log10(v)))
near(v, short) = short ? sprintf('%g', v) : sprintf('%g·10^{%d}', v / 10.0**exponent(v), exponent(v))
# low and high: the ends of the axis. `unset ytics` keeps a step that an earlier panel set, and a step that is no power
# of ten begins at the end of a logarithmic axis: `autofreq` forgets it. So does a list of labels. A series only where
# two powers of ten are in sight, for the same reason.
decades(low, high) = floor(log10(high)) - ceil(log10(low)) + 1
between(e) = '"" 3e'.e.' 1, "" 4e'.e.' 1, "" 6e'.e.' 1, "" 7e'.e.' 1, "" 8e'.e.' 1, "" 9e'.e.' 1'
log_tics(axis, low, high) = 'set format '.axis.' "'.(plain(low, high) ? '%g' : '10^{%L}').'"; set '.axis.'tics autofreq; '. \
    (decades(low, high) > 1 ? 'set '.axis.'tics 10; ' : 'set '.axis.'tics ("" 0); '). \
    (high / low > 100 ? '' : high / low > 5 ? \
    sprintf('do for [e=%d:%d] { ', floor(log10(low)) - 1, ceil(log10(high))).'eval "set '.axis. \
    sprintf('tics add (".(%d ? "" : between(e).", ")."several(e, 2, %d) 2 * 10.0**e, several(e, 5, %d) 5 * 10.0**e%s)" }', \
            decades(low, high) > 1, plain(low, high), plain(low, high), \
            decades(low, high) > 1 ? '' : sprintf(', several(e, 1, %d) 10.0**e', plain(low, high))) : \
    sprintf('do for [n=%d:%d] { ', ceil(low / log_step(low, high)), floor(high / log_step(low, high))).'set '.axis. \
    sprintf('tics add (near(n * %.6g, %d) n * %.6g) }', log_step(low, high), plain(low, high), log_step(low, high)))
log_step(low, high) = tic_step(high - low, 5)
YTICS = 'set ytics autofreq; set ytics out nomirror scale 0.5,0.25 textcolor rgb "#202020"; '
log_ends(from, to) = sprintf('set logscale y 10; set yrange [%.15g:%.15g] noextend; ', from, to).YTICS.log_tics('y', from, to)
# Ends that are nearer to each other than six digits tell apart move away from each other: gnuplot would widen an axis
# without length by itself, and cut it by the step that was meant for the other length into millions of parts.
abs_high(a, b) = abs(a) > abs(b) ? abs(a) : abs(b)
least_range(from, to) = 1e-4 * abs_high(from, to) > 1e-290 ? 1e-4 * abs_high(from, to) : 1e-290
apart(from, to) = to - from >= least_range(from, to)
low_end(from, to) = apart(from, to) ? from : 0.5 * from + 0.5 * to - 0.5 * least_range(from, to)
high_end(from, to) = apart(from, to) ? to : 0.5 * from + 0.5 * to + 0.5 * least_range(from, to)
linear_axis(from, to, digits) = sprintf('unset logscale y; set format y "'.digits.'"; '.YTICS.'set ytics %.15g; set yrange [%.15g:%.15g] noextend', \
    tic_step(to - from, 6), from, to)
linear_ends(from, to) = linear_axis(low_end(from, to), high_end(from, to), '%%h')
linear_given(from, to) = linear_axis(from, to, apart(from, to) ? '%%h' : '%%.15g')
# eval WIDE_TICS(a, b), before the panels: room for labels like 1.5×10^19 where axes go to a and b.
wide_tics(a) = abs(a) >= 1e6 || (abs(a) < 5e-4 && abs(a) > 0)
WIDE_TICS(a, b) = wide_tics(a) || wide_tics(b) ? 'pad_left = pad_left + 0.18; gap_x = gap_x + 0.18' : ''
# The figure's kind of axis and its ends, unless the user wants others; what reaches to 0 or below stays linear.
user_scale(kind) = figure_scale eq '' ? kind : figure_scale
ends_y(kind, from, to) = kind eq 'log' && (y_given ? y_from : from) > 0 ? (y_given ? log_ends(y_from, y_to) : log_ends(from, to)) : \
    y_given ? (kind eq 'log' ? refuse('--yrange: a logarithmic axis begins above 0; --linear draws another') : linear_given(y_from, y_to)) : \
    linear_ends(from, to)
# Where nothing is above 0 there is no logarithm: an axis from 0 to 1.
log_y(low, high) = high <= 0 ? ends_y('linear', -0.02, 1) : \
    user_scale('log') eq 'log' ? ends_y('log', low / 1.15, high * 1.15) : ends_y('linear', low - room(low, high), high + room(low, high))

# eval axis_y('linear'|'log', positive, largest): from 0, or logarithmic from the least value above 0.
axis_y(kind, positive, largest) = largest <= 0 ? ends_y('linear', -0.02, 1) : user_scale(kind) eq 'log' ? ends_y('log', positive / 1.15, largest * 1.15) : ends_y('linear', 0, 1.06 * largest)

# eval STARTUP(words): in a panel whose x axis is percent of training, the part in which running values still hold what
# they began with; words (may be '') stand in it. eval NO_STARTUP takes it away. Grey: burn-in of every run that is drawn. Where it ends at
# another percentage in each, light grey: of some, of up to eight runs with a line of the run's look where its own ends; eval BURN_IN_NOTE
# says so.
array startup_drawn[runs]
do for [r=1:runs] { startup_drawn[r] = !exists('d_curves') }
if (exists('d_curves')) { do for [k=1:d_curves] { if (d_run[k] > 0) { startup_drawn[d_run[k]] = 1 } } }
startup_end = 0
startup_first = 100
do for [r=1:runs] {
    if (startup_drawn[r] && run_startup[r] > startup_end) { startup_end = run_startup[r] }
    if (startup_drawn[r] && run_startup[r] < startup_first) { startup_first = run_startup[r] }
}
startup_differs = startup_end - startup_first > 0.5
startup_lines = startup_differs && (sum [r=1:runs] startup_drawn[r]) <= 8
if (!startup_differs) { startup_first = startup_end }
startup_from = x_given ? x_from : 0
startup_to = x_given ? x_to : 100
startup_shown = startup_end > startup_from && steps eq 'all'
startup_box(tag, from, to, colour) = sprintf('set object %d rectangle from %.6g, graph 0 to %.6g, graph 1 behind fillcolor rgb "%s" fillstyle solid noborder; ', tag, from, to, colour)
# Beside the grey, or in it where there is no place beside it.
startup_inside = startup_first > startup_from + 0.8 * (startup_to - startup_from)
startup_words_at = startup_inside ? (startup_first < startup_to ? startup_first : startup_to) - 1 : startup_first + 1
STARTUP(words) = !startup_shown ? '' : startup_box(99, 0, startup_first, '#ECECEC'). \
    (startup_differs ? startup_box(98, startup_first, startup_end, '#F6F6F6') : ''). \
    (startup_lines ? 'do for [r=1:runs] { if (startup_drawn[r] && run_startup[r] > startup_from && run_startup[r] <= startup_to) { '. \
    'set arrow 9900 + r from first run_startup[r], graph 0 to first run_startup[r], graph 1 nohead linetype r linewidth 0.6 back } }; ' : ''). \
    sprintf('set label 99 "%s" at %.6g, graph 0.97 %s font ",7" textcolor rgb "#808080" front', words, startup_words_at, startup_inside ? 'right' : 'left')
NO_STARTUP = 'unset object 98; unset object 99; unset label 99; do for [r=1:runs] { unset arrow 9900 + r }'
BURN_IN_NOTE = 'eval NOTE(startup_shown && startup_differs ? "Grey: burn-in of all runs; light grey: of some.".(startup_lines ? " Vertical lines: where the burn-in of a run ends." : "") : "")'

# eval BURN_IN_ENTRY, before LEGEND_ROOM: an entry of the legend for panels without room for words.
set linetype 959 lc rgb '#E0E0E0' lw 7 dt solid
BURN_IN_ENTRY = 'if (startup_shown) { legend_count = legend_count + 1; legend_text[legend_count] = "burn-in"; legend_type[legend_count] = 959 }'

# A round step that cuts a range into n parts or fewer, whatever the range.
step_unit(r) = 10.0**floor(log10(r))
tic_step(range, n) = range > 1e-299 * n && range < 1e303 ? round_up(1.0 * range / n) : 1e300
round_up(r) = step_unit(r) * (r <= 1.0001 * step_unit(r) ? 1 : r <= 2.0001 * step_unit(r) ? 2 : r <= 5.0001 * step_unit(r) ? 5 : 10)

# eval linear_y(low, high): linear with some room; a constant gets an axis around it. eval of_unit(unit): the next axes of percents end
# at 0 and 100 unless values lie beyond; with another unit they end anywhere.
axis_least = -1e300
axis_most = 1e300
of_unit(u) = u eq 'percent' ? 'axis_least = 0; axis_most = 100' : 'axis_least = -1e300; axis_most = 1e300'
bound_low(value, end) = value >= axis_least && end < axis_least ? axis_least : end
bound_high(value, end) = value <= axis_most && end > axis_most ? axis_most : end
room_low(low, high) = bound_low(low, low - room(low, high))
room_high(low, high) = bound_high(high, high + room(low, high))
room(low, high) = high > low ? 0.04 * (high - low) : high != 0 ? 0.1 * abs(high) : 1
linear_y(low, high) = user_scale('linear') eq 'log' && low > 0 ? ends_y('log', low / 1.15, high * 1.15) : \
    ends_y('linear', room_low(low, high), room_high(low, high))

# eval x_axis(from, to, step): the x axis of the figure, or the user's. eval percent_x(step): of training, as far as steps
# are drawn.
x_axis(from, to, step) = x_given ? sprintf('set xrange [%.15g:%.15g] noextend; set xtics autofreq; set xtics %.15g', x_from, x_to, tic_step(x_to - x_from, 5)) : \
    sprintf('set xrange [%.15g:%.15g] noextend; set xtics autofreq; set xtics %.15g', from, to, step)
# eval depth_tics(range, n): whole numbers, of a range above 9 about n of them.
depth_tics(range, n) = sprintf('set xtics autofreq; set xtics %d', range < 9 ? 1 : tic_step(range, n))
# percent_tics(columns): a step whose labels keep apart in panels of that many columns.
percent_tics(cs) = panel_width(cs == stacked ? 1 : blocks == 2 ? cs / 2 : cs) < 1.05 ? 50 : 25
percent_x(step) = steps eq 'all' || x_given ? x_axis(0, 100, step) : 'set xrange [*:*] noextend; set xtics autofreq'
# eval epoch_x(first, last, tics): of epochs, from 0 or the first of the steps that are drawn.
epoch_from(first) = steps eq 'all' ? 0 : first
epoch_range(first, last) = last > epoch_from(first) ? last - epoch_from(first) : 1
epoch_x(first, last, tics) = x_axis(epoch_from(first), epoch_from(first) + epoch_range(first, last) * (last > epoch_from(first) ? 1.01 : 1), tic_step(epoch_range(first, last), tics))

# -- dot plots ---------------------------------------------------------------------------------
# Rows from top to bottom with their names at the left. Fill dot_name[i] for i = 1 .. dot_count; eval DOT_ROOM
# before the first panel, dot_panel(column, columns) for each one; then y is the number of the row.
# dot_x(low, high): an x axis with some room, logarithmic above a ratio of 4. Many rows make the figure higher.
array dot_name[entries + 8]
dot_count = 0
dot_letter = 0.06
# Long names take up to dot_lines lines.
dot_lines = 2
dot_most = int((figure_width < 4 ? 0.38 : 0.24) * figure_width / dot_letter)
dot_cut(text) = (title_most = dot_most, folded(text, dot_lines))
dot_tail(text) = (title_most = dot_most, folded_tail(text))
line_end(text) = strstrt(text, "\n")
line_count(text) = line_end(text) ? 1 + line_count(text[line_end(text)+1:*]) : 1
larger(a, b) = a > b ? a : b
line_most(text) = line_end(text) ? larger(line_end(text) - 1, line_most(text[line_end(text)+1:*])) : strlen(text)
array dot_full[entries + 8]
DOT_ROOM = 'dot_longest = 1; dot_row = 0.16; '. \
    'do for [i=1:dot_count] { dot_full[i] = dot_name[i] }; eval keep_apart("dot_name", "dot_full", sprintf("%d", dot_count), "dot_cut", "dot_tail"); '. \
    'do for [i=1:dot_count] { '. \
    'if (line_most(dot_name[i]) > dot_longest) { dot_longest = line_most(dot_name[i]) }; '. \
    'dot_row = larger(dot_row, 0.02 + 0.14 * line_count(dot_name[i])) }; '. \
    'dot_height = head_height + note_height + legend_height + pad_bottom + dot_row * (dot_count + 0.5); '. \
    'if (dot_height > figure_height) { figure_height = grow(dot_height); eval terminal(figure_height) }; '. \
    'pad_left = 0.24 + dot_letter * dot_longest; gap_x = 0.3; set pointsize 0.6; '. \
    'set grid noytics xtics; set grid linetype 958 linecolor rgb "#D8D8D8" linewidth 0.4 dashtype solid'
dot_panel(c, cs) = panel(c, cs, 1, 1).sprintf('; set yrange [%g:0.4] noextend; ', dot_count + 0.6). \
    (c == 1 || stacked ? 'set ytics scale 0 noenhanced ("" 0); do for [i=1:dot_count] { set ytics add (tic_text(dot_name[i]) i) }' : 'unset ytics')
dot_x(low, high) = low > 0 && high / low > 4 ? dot_log(low, high) : \
    sprintf('unset logscale x; set format x "%%h"; set xrange [%.15g:%.15g] noextend; set xtics autofreq; set xtics %.15g', \
    low_end(room_low(low, high), room_high(low, high)), high_end(room_low(low, high), room_high(low, high)), \
    tic_step(high_end(room_low(low, high), room_high(low, high)) - low_end(room_low(low, high), room_high(low, high)), 5))
dot_log(low, high) = sprintf('set logscale x 10; set xrange [%.15g:%.15g] noextend; ', low / 1.1, bound_high(high, high * 1.1)). \
    log_tics('x', low / 1.1, bound_high(high, high * 1.1))

# -- heat maps ---------------------------------------------------------------------------------
# eval log_cb(low, high): colours by the logarithm, labelled like log_y. linear_cb(low, high): where figure_scale is linear.
log_cb(low, high) = high <= 0 ? 'unset logscale cb; set format cb "%h"; set cbrange [0:1]; set cbtics autofreq' : y_given ? cb_ends(y_from, y_to) : cb_ends(low / 1.01, high * 1.01)
linear_cb(low, high) = y_given ? cb_ends(y_from, y_to) : cb_ends(low_end(low - room(low, high), high + room(low, high)), high_end(low - room(low, high), high + room(low, high)))
cb_ends(from, to) = user_scale('log') eq 'log' && from <= 0 ? refuse('--yrange: logarithmic colours begin above 0; --linear draws others') : \
    user_scale('log') eq 'log' ? sprintf('set logscale cb 10; set cbrange [%.15g:%.15g]; set cbtics scale 0.4 offset -0.8,0; ', from, to).log_tics('cb', from, to) : \
    sprintf('unset logscale cb; set format cb "%%h"; set cbrange [%.15g:%.15g]; set cbtics autofreq; set cbtics scale 0.4 offset -0.8,0 %.15g', \
    from, to, tic_step(to - from, 6))
# eval signed_cb(low, high), of values of both signs: 0 in the middle of two colours.
larger_end(low, high) = abs(low) > abs(high) ? abs(low) : abs(high)
signed_cb(low, high) = "set palette defined (-1 '#0072B2', -0.5 '#7FB8D8', 0 '#F2F2F2', 0.5 '#EAAE7F', 1 '#D55E00'); ".linear_cb(-larger_end(low, high), larger_end(low, high))
# eval heat_map(file, column, curves, rows): one line per curve, from top to bottom. Viridis: readable in grey
# and by colour-blind readers. An image needs two by two points; smaller ones are drawn as boxes. The field of a step ends where the step does.
set palette defined (0 '#440154', 0.125 '#472D7B', 0.25 '#3B528B', 0.375 '#2C728E', 0.5 '#21918C', \
                     0.625 '#28AE80', 0.75 '#5EC962', 0.875 '#ADDC30', 1 '#FDE725')
heat_map(file, c, curves, rows) = heat_rows(file, c, 1, curves, 'column(-2)+1', curves > 1 && rows > 1, rows)
heat_rows(file, c, first, last, y, image, rows) = sprintf('set yrange [%g:%g] noextend; plot "%s" using ', last + 0.5, first - 0.5, file). \
    (image ? sprintf('($1-%g):(%s):%d with image', to_middle(file, rows), y, c) : \
     sprintf('1:(%s):($1-%g):($1+%g):(%s-0.5):(%s+0.5):%d '. \
             'with boxxyerror fillcolor palette fillstyle solid noborder', y, 50.0 / rows + to_middle(file, rows), 50.0 / rows - to_middle(file, rows), y, y, c))
to_middle(file, rows) = value(file[1:1].'_x_is_end') ? 50.0 / rows : 0
# eval depth_map(file, table, column, first, last, curves, rows): at the depth of each curve's site, white where no site is drawn.
depth_map(file, t, c, first, last, curves, rows) = last - first == curves - 1 ? \
    heat_rows(file, c, first, last, sprintf('column(-2)+%d', first), curves > 1 && rows > 1, rows) : \
    heat_rows(file, c, first, last, sprintf('%s_depth[int(column(-2))+1]', t), 0, rows)

# -- a panel per run ---------------------------------------------------------------------------
# eval RUN_PANELS, behind pads and legend, makes room for `cells` panels, those of the runs and what a figure adds, in rows
# of up to three; further rows make the figure higher. Then eval cell_panel(i), and run_title(r) above it: run_label[r] in up to two
# lines that end behind a space, a comma or else a hyphen where there is one, or in one with run_below[r] below.
array run_below[runs]
do for [r=1:runs] { run_below[r] = '' }
title_most = 1
fold_end(text, n) = n < 2 ? hyphen_end(text, title_most) : text[n:n] eq ' ' || text[n:n] eq ',' ? n : fold_end(text, n - 1)
hyphen_end(text, n) = n < 2 ? title_most : text[n:n] eq '-' ? n : hyphen_end(text, n - 1)
folded(text, lines) = strlen(text) <= title_most || lines == 1 ? cut(text, title_most) : \
    text[1:fold_end(text, title_most)]."\n".folded(text[fold_end(text, title_most)+1:*], lines - 1)
in_two(text) = folded(text, 2)
folded_tail(text) = strlen(text) <= title_most ? text : text[1:fold_end(text, title_most)]."\n".title_tail(text[fold_end(text, title_most)+1:*])
title_cut(text) = cut(text, title_most)
title_tail(text) = strlen(text) <= title_most ? text : text[1:title_most-1].'…'
array run_folded[runs]
array run_cut[runs]
run_title(r) = run_below[r] eq '' ? run_folded[r] : run_cut[r]."\n".run_below[r]
RUN_PANELS = 'cell_columns = cells < 4 ? cells : cells == 4 ? 2 : 3; '. \
    'while (!figure_fixed && cell_columns > 1 && panel_width(cell_columns) < narrowest) { cell_columns = cell_columns - 1 }; '. \
    'cell_rows = int((cells - 1) / cell_columns) + 1; '. \
    'title_most = int((panel_width(cell_columns) + 0.3) / 0.058); title_lines = 1; '. \
    'do for [r=1:runs] { title_lines = strlen(run_label[r]) > title_most || strlen(run_below[r]) ? 2 : title_lines }; '. \
    'above_panels = head_height + note_height + legend_height - 0.12; '. \
    'eval keep_apart("run_folded", "run_label", sprintf("%d", runs), "in_two", "folded_tail"); '. \
    'eval TITLE_BRIEF; eval keep_apart("run_cut", "run_brief", sprintf("%d", runs), "title_cut", "title_tail"); '. \
    'legend_height = legend_height + 0.12 * title_lines; gap_y = 0.5 + 0.12 * title_lines; '. \
    'figure_height = grow(above_panels + (figure_height - above_panels + 0.12 * (title_lines - 1)) * cell_rows); '. \
    'eval terminal(figure_height); set title noenhanced font ",7" offset 0,-0.7'
cell_column(i) = (i - 1) % cell_columns + 1
cell_row(i) = int((i - 1) / cell_columns) + 1
cell_panel(i) = panel(cell_column(i), cell_columns, cell_row(i), cell_rows)
# eval SITE_LOOKS: the curves of table d are one per run and site. Of one run's few sites each has a look and its name in the legend
# (sites_named); else tone[k] is from 0, a run's first site, to 1, its last, and `eval SITE_COLOURS` in one panel tells the
# colours: dark to light, and none too light for a line. site_plot(k, x, y, 'lines') is the part of a plot command for curve k,
# NO_PLOT the part before the first.
sites_named = 0
SITE_LOOKS = 'array tone[d_curves]; array sites_of[runs]; do for [r=1:runs] { sites_of[r] = 0 }; '. \
    'do for [k=1:d_curves] { tone[k] = sites_of[d_run[k]]; sites_of[d_run[k]] = sites_of[d_run[k]] + 1 }; '. \
    'do for [k=1:d_curves] { tone[k] = sites_of[d_run[k]] > 1 ? tone[k] / (sites_of[d_run[k]] - 1.0) : 0 }; '. \
    'sites_named = runs == 1 && d_curves <= 8; '. \
    'if (sites_named) { do for [k=1:d_curves] { legend_count = legend_count + 1; legend_text[legend_count] = d_key[k]; legend_type[legend_count] = 950 + k } }; '. \
    'set palette defined (0 "#0D0887", 0.25 "#7E03A8", 0.5 "#CC4778", 0.75 "#F89540", 1 "#E8D020"); set cbrange [0:1]; unset colorbox'
NO_PLOT = 'NaN with lines linecolor palette'
site_plot(k, x, y, kind) = sprintf(', d index %d using %s:%s', k - 1, x, y).(sites_named ? sprintf(' with %s linetype %d', kind, 950 + k) : \
    sprintf(':(%g) with %s linecolor palette%s', tone[k], kind, kind eq 'yerrorbars' ? '' : ' linewidth 0.8 dashtype solid'.(kind eq 'linespoints' ? ' pointtype 7' : '')))
SITE_COLOURS = 'set colorbox user origin screen (1 - 0.72 / figure_width), screen (panel_bottom(1, cell_rows) / figure_height) '. \
    'size screen (0.08 / figure_width), screen (panel_height(cell_rows) / figure_height) noborder; '. \
    'set cbtics scale 0 font ",7" offset -0.8,0 ("first site" 0, "last site" 1)'

# -- legend ------------------------------------------------------------------------------------
# With the title of the figure above, and the note below. Above the panels, never over data, as many columns as fit. Fill legend_text[i] and legend_type[i]
# (linetype) for i = 1 .. legend_count, and legend_mark[i] = 1 for a point, 2 for a line with a point; eval LEGEND_ROOM before the first panel, eval LEGEND_DRAW after the
# last. (A key of gnuplot's own warns when a label is long, and statplot takes warnings for failures.)
array legend_text[entries + 8]
array legend_type[entries + 8]
array legend_mark[entries + 8]
do for [i=1:entries+8] { legend_mark[i] = 0 }
legend_count = 0
legend_line = 0.3
# Inches of 8 point letters; a text is cut where the figure ends.
letter_width(c) = strstrt(" ijlI.,:;'|!()[]/-", c) ? 0.038 : strstrt('mwMW@%…', c) ? 0.1 : strstrt('_ABCDEFGHJKLNOPQRSTUVXYZ', c) ? 0.076 : 0.0675
text_width(text) = strlen(text) == 0 ? 0 : sum [c=1:strlen(text)] letter_width(text[c:c])
cut_to(text, inches) = text_width(text) <= inches ? text : shorter(text, inches, int(inches * strlen(text) / text_width(text)))
shorter(text, inches, n) = n < 4 || text_width(cut(text, n)) <= inches ? cut(text, n) : shorter(text, inches, n - 1)
legend_cut(text) = cut_to(text, figure_width - 0.08 - legend_line - 0.1)
legend_tail(text) = text_width(text) <= figure_width - 0.08 - legend_line - 0.1 ? text : end_to(text, figure_width - 0.08 - legend_line - 0.1, strlen(text))
end_to(text, inches, n) = n < 4 || text_width(text[1:n].'…') <= inches ? text[1:n].'…' : end_to(text, inches, n - 1)
array legend_short[entries + 8]
legend_width(i) = text_width(legend_short[i]) + legend_line + 0.28
# Labels of runs that are too long lose first what tells no two of them apart, in all of them alike: the model where the data differ
# too. legend_full[i] is legend_text[i] with such labels.
array legend_full[entries + 8]
array legend_of[entries + 8]
array run_brief[runs]
without_part(text, p) = strstrt(text, ', ') == 0 ? text : p < 2 ? text[strstrt(text, ', ')+2:*] : \
    text[1:strstrt(text, ', ')+1].without_part(text[strstrt(text, ', ')+2:*], p - 1)
begins_with(text, label) = strlen(label) > 0 && text[1:strlen(label)] eq label
LEGEND_FULL = 'too_long = 0; do for [i=1:legend_count] { legend_full[i] = legend_of[i] > 0 ? run_brief[legend_of[i]].legend_text[i][strlen(run_label[legend_of[i]])+1:*] : legend_text[i]; '. \
    'if (!(legend_cut(legend_full[i]) eq legend_full[i])) { too_long = 1 } }'
# BRIEFER: leaves out part part_ of all labels where they stay apart, else goes on to the next part.
BRIEFER = 'apart_ = 1; do for [r=2:runs] { do for [s_=1:r-1] { if (!(run_label[r] eq run_label[s_]) && '. \
    'without_part(run_brief[r], part_) eq without_part(run_brief[s_], part_)) { apart_ = 0 } } }; '. \
    'if (apart_) { do for [r=1:runs] { run_brief[r] = without_part(run_brief[r], part_) } } else { part_ = part_ + 1 }'
TITLE_BRIEF = 'do for [r=1:runs] { run_brief[r] = run_label[r] }; part_ = 1; do for [round_=1:8] { too_long = 0; '. \
    'do for [r=1:runs] { if (strlen(run_brief[r]) > title_most) { too_long = 1 } }; if (too_long) { eval BRIEFER } }'
LEGEND_BRIEF = 'do for [r=1:runs] { run_brief[r] = run_label[r] }; '. \
    'do for [i=1:legend_count] { legend_of[i] = 0; do for [r=1:runs] { if (begins_with(legend_text[i], run_label[r]) && '. \
    '(legend_of[i] == 0 || strlen(run_label[r]) > strlen(run_label[legend_of[i]]))) { legend_of[i] = r } } }; '. \
    'part_ = 1; eval LEGEND_FULL; do for [round_=1:8] { if (too_long) { eval BRIEFER; eval LEGEND_FULL } }'
# Entries follow each other in rows; rows beyond the first make the figure higher, not the panels lower.
array legend_left[entries + 8]
array legend_row[entries + 8]
legend_x(i) = legend_left[i] / figure_width
legend_y(i) = 1 - (head_height + 0.1 + 0.15 * legend_row[i]) / figure_height
repeated(i) = legend_type[i] > look_count && legend_type[i] <= 900
LEGEND_ROOM = 'eval NOTE((sum [i=1:legend_count] repeated(i)) > 0 ? sprintf("There are %d line styles: later runs repeat those of the first.", look_count) : ""); '. \
    'eval LEGEND_BRIEF; eval keep_apart("legend_short", "legend_full", sprintf("%d", legend_count), "legend_cut", "legend_tail"); legend_rows = 0; legend_next = 0.08; '. \
    'do for [i=1:legend_count] { '. \
    'if (legend_next > 0.08 && legend_next + legend_width(i) - 0.2 > figure_width) { legend_rows = legend_rows + 1; legend_next = 0.08 }; '. \
    'legend_left[i] = legend_next; legend_row[i] = legend_rows; legend_next = legend_next + legend_width(i) }; '. \
    'legend_height = 0.12 + 0.15 * (legend_count > 0 ? legend_rows + 1 : 0); '. \
    'figure_height = grow(figure_height + 0.15 * legend_rows); eval terminal(figure_height)'
LEGEND_DRAW = 'set lmargin at screen 0; set rmargin at screen 1; set bmargin at screen 0; '. \
    'set tmargin at screen 1; unset border; unset tics; unset xlabel; unset ylabel; unset title; unset grid; '. \
    'unset logscale; unset label; set yrange [0:1] noextend; unset arrow; unset object; unset colorbox; set xrange [0:1]; set yrange [0:1]; '. \
    'do for [i=1:legend_count] { '. \
    'if (legend_mark[i] != 1) { set arrow from screen legend_x(i), screen legend_y(i) to screen (legend_x(i) + legend_line / figure_width), screen legend_y(i) nohead linetype legend_type[i] }; '. \
    'if (legend_mark[i] > 0) { set label "" at screen (legend_x(i) + 0.5 * legend_line / figure_width), screen legend_y(i) point linetype legend_type[i] pointsize 0.6 }; '. \
    'set label legend_short[i] at screen (legend_x(i) + (legend_line + 0.06) / figure_width), screen legend_y(i) left noenhanced textcolor rgb "#202020" }; '. \
    'if (head_height > 0) { set label figure_title at screen 0.5, screen (1 - 0.12 / figure_height) center noenhanced font ",10" textcolor rgb "#202020" }; '. \
    'if (note_height > 0) { set label notes_folded(figure_note) at screen (0.06 / figure_width), screen ((0.07 + 0.1 * (notes_lines(figure_note) - 1)) / figure_height) left noenhanced font ",7" textcolor rgb "#808080" }; '. \
    'plot NaN notitle; unset arrow; unset label'
