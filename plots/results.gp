#: title result table as a picture: a validation metric per normalization and task, with the papers' values in panels of their own
#: question compare
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_rbn nlp_pnv nlp_pn nlp_ln_simple nlp_adanorm
#: size 3.25 2.7
#: metric leading
#: published * {metric}
#: table t stat-gap {runs} --metric {metric}
# A panel per model and data set, a row per normalization (the first among a run's sites); a filled point per run at its
# last evaluation. --published: below them a panel per data set of the papers, since values of other data have nothing to do
# on one axis; hollow grey, a shape per table (--published-table rbn-iwslt14-*). Every panel has its own axis.
# Bars: 95 % intervals of the means of replicates, runs that differ in their seed alone.
# The arrow at the axis says which end is better. The axis is logarithmic where values differ by more than 4.

array task_of[runs]
array value_of[runs]
array low_of[runs]
array high_of[runs]
array metric_of[runs]
array unit_of[runs]
array better_of[runs]
stats t using (task_of[int(column(0))+1] = int(column(t_task)), value_of[int(column(0))+1] = cell(t_value), \
    low_of[int(column(0))+1] = cell(t_value_low), high_of[int(column(0))+1] = cell(t_value_high), \
    metric_of[int(column(0))+1] = strcol(t_metric), unit_of[int(column(0))+1] = strcol(t_unit), \
    better_of[int(column(0))+1] = strcol(t_better), 1) nooutput name 'RUN'

# Panels, and for each row the panel that it is in; rows are numbered from 1 in each panel.
array panel_name[entries + 8]
array panel_axis[entries + 8]
array panel_rows[entries + 8]
array panel_unit[entries + 8]
array panel_low[entries + 8]
array panel_high[entries + 8]
array row_panel[entries + 8]
array row_place[entries + 8]
panels = 0
PANEL = 'p = 0; do for [i=1:panels] { if (panel_name[i] eq name) { p = i } }; '. \
    'if (!p) { panels = panels + 1; p = panels; panel_name[p] = name; panel_axis[p] = axis; panel_unit[p] = unit; panel_rows[p] = 0; panel_low[p] = 1e300; panel_high[p] = -1e300 }'
ROW = 'row = 0; do for [i=1:dot_count] { if (dot_name[i] eq name && row_panel[i] == p) { row = i } }; '. \
    'if (!row) { dot_count = dot_count + 1; row = dot_count; dot_name[row] = name; row_panel[row] = p; panel_rows[p] = panel_rows[p] + 1; row_place[row] = panel_rows[p] }'
WIDEN = 'if (v == v) { if (v < panel_low[p]) { panel_low[p] = v }; if (v > panel_high[p]) { panel_high[p] = v } }'

array run_panel[runs]
array run_row[runs]
tasks = 0
do for [r=1:runs] {
    name = run_task[r]
    axis = with_better(metric_of[r], unit_of[r], better_of[r])
    unit = unit_of[r]
    eval PANEL
    run_panel[r] = p
    name = run_norm[r]
    eval ROW
    run_row[r] = row_place[row]
    v = value_of[r]
    eval WIDEN
    v = low_of[r]
    eval WIDEN
    v = high_of[r]
    eval WIDEN
    if (task_of[r] > tasks) {
        tasks = task_of[r]
        legend_text[tasks] = run_task[r]
        legend_type[tasks] = tasks
        legend_mark[tasks] = 1
    }
}
legend_count = tasks
# The data of a table of published.tsv: "rbn-ptb-post" is PTB, "pn-ptb-valid" its validation set.
behind(text, n) = n < 1 ? text : text[n+1:*]
without(text, end) = strlen(text) > strlen(end) && text[strlen(text)-strlen(end)+1:*] eq end ? text[1:strlen(text)-strlen(end)] : text
corpus(table) = without(without(behind(table, strstrt(table, '-')), '-pre'), '-post')
array published_panel[published_rows > 0 ? published_rows : 1]
array published_place[published_rows > 0 ? published_rows : 1]
do for [j=1:published_rows] {
    name = corpus(published_table[j]).' (published)'
    axis = of_paper(metric eq 'leading' ? 'ppl' : metric[1:6] eq 'valid_' ? metric[7:*] : metric)
    unit = ''
    eval PANEL
    published_panel[j] = p
    name = published_norm[j]
    eval ROW
    published_place[j] = row_place[row]
    v = published_y1[j]
    eval WIDEN
}
do for [g=1:published_groups] {
    legend_count = legend_count + 1
    legend_text[legend_count] = published_name[g]
    legend_type[legend_count] = published_type(g)
    legend_mark[legend_count] = 1
}
# Panels from top to bottom, each as high as its rows.
row_height = panels > 1 ? 0.16 : 0.29
axis_height = 0.36
name_height = panels > 1 ? 0.2 : 0.04
plain_height = head_height + note_height + panels * (axis_height + name_height)
do for [p=1:panels] { plain_height = plain_height + row_height * (panel_rows[p] + 0.2) }
eval LEGEND_ROOM
if (figure_fixed) { row_height = row_height * (figure_height - legend_height - head_height - note_height - panels * (axis_height + name_height)) / (plain_height - head_height - note_height - panels * (axis_height + name_height)) }
if (row_height < 0.06) { eval refuse('--size leaves no room for the rows') }
figure_height = grow(plain_height + legend_height)
eval terminal(figure_height)
legend_rows_height = legend_height
dot_total = dot_count
dot_count = 0
eval DOT_ROOM
do for [i=1:dot_total] { dot_full[i] = dot_name[i] }
eval keep_apart('dot_name', 'dot_full', sprintf('%d', dot_total), 'dot_cut', 'dot_tail')
do for [i=1:dot_total] {
    if (strlen(dot_name[i]) > dot_longest) { dot_longest = strlen(dot_name[i]) }
}
pad_left = 0.24 + dot_letter * dot_longest
set title noenhanced font ',7' offset 0,-0.7

set multiplot
top = figure_height - head_height - legend_rows_height
do for [p=1:panels] {
    top = top - name_height
    bottom = top - row_height * (panel_rows[p] + 0.2)
    eval panel(1, 1, 1, 1)
    eval sprintf('set bmargin at screen %.5f; set tmargin at screen %.5f', bottom / figure_height, top / figure_height)
    top = bottom - axis_height
    eval sprintf('set yrange [%g:0.4] noextend', panel_rows[p] + 0.6)
    set ytics autofreq
    set ytics scale 0 noenhanced ("" 0)
    do for [i=1:dot_total] { if (row_panel[i] == p) { set ytics add (tic_text(dot_name[i]) row_place[i]) } }
    if (panel_low[p] > panel_high[p]) { panel_low[p] = 0; panel_high[p] = 1 }
    eval of_unit(panel_unit[p])
    eval dot_x(panel_low[p], panel_high[p])
    set xlabel panel_axis[p] noenhanced offset 0,0.7
    set title (panels > 1 ? panel_name[p] : '')
    command = ''
    do for [r=1:runs] {
        if (run_panel[r] == p && low_of[r] == low_of[r]) {
            command = command.sprintf(', t every ::0::0 using (low_of[%d]):(run_row[%d]):(high_of[%d] - low_of[%d]):(0) ', r, r, r, r). \
                'with vectors nohead linetype 958 linewidth 1.2 dashtype solid'
        }
    }
    do for [r=1:runs] {
        if (run_panel[r] == p && value_of[r] == value_of[r]) {
            command = command.sprintf(', t every ::0::0 using (value_of[%d]):(run_row[%d]) with points linetype task_of[%d]', r, r, r)
        }
    }
    do for [j=1:published_rows] {
        if (published_panel[j] == p && published_y1[j] == published_y1[j]) {
            command = command.sprintf(', t every ::0::0 using (published_y1[%d]):(published_place[%d]) ', j, j). \
                sprintf('with points linetype published_type(published_group[%d]) pointsize 0.75', j)
        }
    }
    eval 'plot '.(strlen(command) > 0 ? command[3:*] : 'NaN notitle')
}
unset title
eval LEGEND_DRAW
unset multiplot
