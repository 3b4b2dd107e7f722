// board: the dashboard, its plots, my answers, and the owner's review.
import {TEXT} from '/texts.js';
import {duration, h, number, picture} from '/dom.js';

const SVG = 'http://www.w3.org/2000/svg';
function s(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const short = (n) => n >= 1e9 ? `${+(n / 1e9).toPrecision(3)}G` : n >= 1e6 ? `${+(n / 1e6).toPrecision(3)}M`
    : n >= 1e4 ? `${+(n / 1e3).toPrecision(3)}k` : String(+n.toPrecision(3));

// lines: [{class, points: [[x, y]…]}]; from: the lowest y of the axis.
function plot(caption, lines, from = 0) {
  const W = 420, H = 200, left = 46, bottom = 22, top = 10, right = 14;
  const all = lines.flatMap((l) => l.points);
  const x1 = Math.max(1, ...all.map((p) => p[0])), x0 = Math.min(x1, ...all.map((p) => p[0]));
  const y1 = Math.max(from + 1e-9, ...all.map((p) => p[1])), y0 = from;
  const x = (v) => left + (x1 === x0 ? 1 : (v - x0) / (x1 - x0)) * (W - left - right);
  const y = (v) => H - bottom - (v - y0) / (y1 - y0) * (H - bottom - top);
  const svg = s('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img',
      'aria-label': `${caption}: ${short(all.at(-1)?.[1] ?? 0)}`},
    s('path', {class: 'axis', d: `M${left} ${top}V${H - bottom}H${W - right}`}),
    s('text', {x: left - 6, y: y(y1) + 4, 'text-anchor': 'end'}, short(y1)),
    s('text', {x: left - 6, y: y(y0) + 4, 'text-anchor': 'end'}, short(y0)),
    s('text', {x: left, y: H - 6}, short(x0)), s('text', {x: W - right, y: H - 6, 'text-anchor': 'end'}, short(x1)));
  for (const line of lines) {
    svg.append(s('polyline', {class: `line ${line.class ?? ''}`,
        points: line.points.map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(' ')}));
    const end = line.points.at(-1);
    if (end && !line.class) svg.append(s('circle', {class: 'dot', cx: x(end[0]), cy: y(end[1]), r: 3.5}));
  }
  return h('figure', {}, h('figcaption', {}, caption), svg);
}

const figure = (value, name, proud) => h('div', {class: proud ? 'figure proud' : 'figure'}, h('b', {}, value),
    h('span', {}, name));
const bar = (value, most, text) => h('label', {}, h('span', {}, text),
    h('progress', {max: most, value: Math.min(value, most)}));
const percent = (v) => `${(100 * v).toFixed(1)} %`;

function table(head, rows) {
  return h('div', {class: 'scroll'}, h('table', {},
      h('thead', {}, h('tr', {}, head.map((t) => h('th', {scope: 'col'}, t)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell) => h('td', {}, String(cell))))))));
}

export function dashboard(d, owner) {
  const B = TEXT.board;
  const implied = Math.max(0, (d.known ?? 0) - (d.told ?? 0));
  const left = d.budget > 0 ? Math.max(0, d.budget - (d.answered ?? 0)) : d.open ?? 0;
  const each = d.timed > 0 ? d.seconds / d.timed : 0;   // imported answers have no time
  const answered = (d.history ?? []).map((p) => [p[0], Math.min(p[0], p[1])]);
  const body = [h('h1', {tabindex: '-1'}, B.title),
    h('div', {class: 'figures'}, figure(number(implied), B.implied, true), figure(number(d.told ?? 0), B.told),
      figure(number(d.answers ?? 0), B.answers),
      figure(number(d.components ?? d.samples), B.components), figure(number(d.open ?? 0), B.open),
      figure(number(d.disputes ?? 0), B.disputes),
      figure(duration(d.seconds ?? 0), B.time), figure(number(d.cost ?? 0), B.cost),
      d.trained_on >= 0 ? figure(number(d.trained_on), B.trained_on) : null,
      d.accuracy.length > 0 ? figure(percent(d.accuracy.at(-1)[1]), B.accuracy(d.measure)) : null),
    h('div', {class: 'bars'},
      d.budget > 0 ? bar(d.answered ?? 0, d.budget, B.budget(number(d.answered ?? 0), number(d.budget))) : null,
      d.classes > 0 ? bar(d.answered ?? 0, d.samples * d.classes,
          B.pairs(number(d.answered ?? 0), number(d.samples * d.classes))) : null,
      each > 0 && left > 0 ? h('span', {}, B.forecast(duration(left * each), number(left))) : null)];
  if (d.unused) body.push(h('p', {class: 'note'}, B.unused(d.unused, number(d.no ?? 0))));
  const plots = h('div', {class: 'plots'});
  if ((d.history ?? []).length > 1) {
    plots.append(plot(B.plot_known,
        [{points: d.history.map((p) => [p[0], p[1]])}, {class: 'second', points: answered}]),
      plot(B.plot_groups, [{points: d.history.map((p) => [p[0], p[2]])}]));
  }
  if (d.accuracy.length > 0) plots.append(plot(B.plot_accuracy(d.measure), [{points: d.accuracy}],
      Math.floor(10 * Math.min(...d.accuracy.map((p) => p[1]))) / 10));
  body.push(plots);
  if (d.accuracy.length === 0) body.push(h('p', {}, B.no_accuracy));
  if ((d.people ?? []).length > 0) {
    body.push(h('h2', {}, B.people), table([B.name, B.count, B.back, B.pace, B.gold],
        d.people.map((p) => [p.name, number(p.answers), p.taken_back, p.seconds > 0 ? p.seconds.toFixed(1) : '–',
      p.gold ? `${p.gold[0]} / ${p.gold[1]}` : '–'])));
  }
  if (d.agreement) body.push(h('p', {}, d.agreement.questions > 0
      ? B.agreement(number(d.agreement.questions), percent(d.agreement.raw), d.agreement.fleiss.toFixed(2))
      : B.no_agreement));
  if ((d.pairs ?? []).length > 0) {
    body.push(h('h2', {}, B.cohen), table([B.pair, B.both, B.raw, B.kappa],
        d.pairs.map((p) => [`${p.a}, ${p.b}`, number(p.questions), percent(p.raw), p.cohen.toFixed(2)])));
  }
  if ((d.disagreements ?? []).length > 0) body.push(h('h2', {}, B.recent),
      h('div', {class: 'list'}, d.disagreements.map((one) => differing(one))));
  if (owner) {
    body.push(h('h2', {}, B.exports), h('div', {class: 'links'},
      ['answers.jsonl', 'answers.csv', 'label-studio.json', 'edges.csv'].map((name) =>
          h('a', {class: 'button', href: `/export/${name}`, download: name}, name))));
  }
  return h('section', {}, body);
}

export function my_answers(cards, change, undo) {
  const M = TEXT.mine;
  if (cards.length === 0) return h('section', {}, h('h1', {tabindex: '-1'}, M.title), h('p', {class: 'quiet'}, M.none));
  return h('section', {}, h('h1', {tabindex: '-1'}, M.title), h('div', {class: 'list'}, cards.map((c) => {
    const yes = c.answers.filter((a) => a[1] === 'yes').length;
    const said = c.answers.length === 1 ? TEXT.verdict[c.answers[0][1]] : M.of(yes, c.answers.length);
    const shown = picture(c.template);
    const mark = c.kind === 'outliers' ? 'no' : 'yes';   // those that were marked come first, with a frame
    const others = [...c.answers].sort((a, b) => (b[1] === mark) - (a[1] === mark)).slice(0, 6).map((a) => {
      const p = picture(a[0]);
      p.classList.add('small');
      if (a[1] === mark) p.classList.add('marked');
      return p;
    });
    return h('div', {class: 'row', 'data-uuid': c.uuid}, shown, others,
      h('div', {class: 'grow'}, said, h('div', {class: 'soft'},
          `${TEXT.kind[c.kind]} · ${new Date(c.at * 1000).toLocaleTimeString('en')}`)),
      h('button', {type: 'button', onclick: () => change(c)}, M.change),
      h('button', {type: 'button', onclick: () => undo(c)}, M.undo));
  })));
}

const two = (i, j, same) => [picture(i), h('span', {class: 'sign'}, same === null ? '·' : same ? '=' : '≠'),
    picture(j)];
const differing = (d, ...buttons) => h('div', {class: 'row'}, two(d.i, d.j, null),
  h('div', {class: 'grow'}, d.said.map(([who, what]) => `${who}: ${TEXT.verdict[what] ?? what}`).join(', ')), buttons);

export function review(r, settle) {
  const R = TEXT.review;
  const opposite = (same) => same ? 'no' : 'yes';
  const disputes = r.disputes.map((d) => h('div', {class: 'list dispute'},
    h('div', {class: 'row'}, two(d.i, d.j, d.same), h('div', {class: 'grow'}, R.says(d.same)),
      h('button', {type: 'button', onclick: () => settle(d.query, d.j, opposite(d.same))}, R.wrong)),
    h('p', {}, R.but),
    d.chain.map((l) => h('div', {class: 'row'}, two(l.i, l.j, l.same), h('div', {class: 'grow'}),
      l.query > 0 ? h('button', {type: 'button', onclick: () => settle(l.query, l.member, opposite(l.same))}, R.wrong)
          : h('span', {class: 'soft'}, R.by_labels)))));
  const differ = r.disagreements.map((d) => differing(d,
    h('button', {type: 'button', onclick: () => settle(d.query, d.j, 'yes')}, R.same),
    h('button', {type: 'button', onclick: () => settle(d.query, d.j, 'no')}, R.different)));
  return h('section', {}, h('h1', {tabindex: '-1'}, R.title), disputes.length ? disputes : h('p', {}, R.none),
    h('h2', {}, R.differ), differ.length ? h('div', {class: 'list'}, differ) : h('p', {}, R.agree));
}
