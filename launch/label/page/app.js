// app: the page: shows cards, sends their answers, handles keys, and switches between the views.
import {TEXT} from '/texts.js';
import {get, Outbox, uuid} from '/api.js';
import {enlarge, h, key, notice, number, preload, show_pictures} from '/dom.js';
import {make_card} from '/cards.js';
import {dashboard, my_answers, review} from '/board.js';

const AHEAD = 4;                    // cards loaded in advance
const POLL = 3000, SLOW_POLL = 15000, AGAIN = 1000, SOON = 200;   // milliseconds

const main = document.getElementById('main');
const state = {view: 'answer', owner: false, question: '', instructions: '', why: '', queue: [], past: [], shown: null,
    outbox: null, fetching: false};

// --- cards ---

const same_card = (a, b) => a.query === b.query && a.members.some((m) => b.members.includes(m));

function pending(card) {
  return state.outbox.entries().some((e) => e.path === '/api/answer'
      && same_card(card, {query: e.body.query, members: e.body.answers.map((a) => a[0])}));
}

async function fetch_cards() {
  if (state.fetching) return;
  state.fetching = true;
  try {
    const found = await get(`/api/questions?n=${AHEAD}`);
    state.owner = found.owner;
    show_pictures(found.images);
    state.question = found.question;
    state.instructions = found.instructions;
    state.why = found.why;
    greet();
    state.outbox ??= new Outbox(found.person, say_waiting, refused);
    for (const card of found.cards) {
      const known = [state.shown?.card, ...state.queue].some((c) => c && same_card(c, card));
      if (known || pending(card) || state.past.some((p) => !p.sent && same_card(p.card, card))) continue;
      state.queue.push(card);
      [card.template, ...card.members, ...(card.examples ?? [])].forEach(preload);
    }
  } catch (e) {
    if (e.status === 401) notice(TEXT.ended);
  } finally {
    state.fetching = false;
  }
  show_views();
  if (state.view !== 'answer' || state.shown) return;
  if (state.queue.length > 0) show_next();
  else show_empty();
}

function show_next() {
  const card = state.queue.shift();
  if (card) show_card(card);
  else show_empty();
  if (state.queue.length < AHEAD - 1) fetch_cards();
}

function show_empty() {
  state.shown = null;
  main.replaceChildren(h('p', {class: 'quiet', 'data-empty': true}, state.outbox ? TEXT.empty : TEXT.loading),
    state.why ? h('p', {class: 'why'}, TEXT.why(state.why)) : '');
  clearTimeout(state.again);
  // An unsent answer may free the next card.
  state.again = setTimeout(() => { if (!document.hidden) fetch_cards(); }, state.outbox?.keys().length ? SOON : AGAIN);
}

function show_card(card) {
  const made = make_card(card, (verdicts) => answer(card, verdicts), undo, state.question);
  state.shown = {card, made, since: performance.now(), hidden: 0};
  main.replaceChildren(card.replaces ? h('p', {class: 'soft'}, TEXT.question.changing) : '', made.element);
  made.element.dataset.query = card.query;
}

function answer(card, answers) {
  const id = uuid();
  const seconds = Math.max(0, performance.now() - state.shown.since - state.shown.hidden) / 1000;
  const body = {uuid: id, query: card.query, ticket: card.ticket, answers, seconds};
  if (card.replaces) body.replaces = card.replaces;
  state.past.push({card: {...card, answers, replaces: undefined}, uuid: id});
  if (state.past.length > 50) state.past.shift();
  state.outbox.add('/api/answer', body);
  if (card.replaces) notice(TEXT.settled);
  show_next();
}

// Shows the last card again, as it was filled in, and undoes its answer at once.
async function undo() {
  let last = state.past.pop();
  if (!last) {
    try {
      const found = (await get('/api/mine')).cards[0];
      if (found) last = {uuid: found.uuid, card: as_card(found)};
    } catch { /* no connection: there is nothing to show */ }
  }
  if (!last) return notice(TEXT.nothing_to_undo);
  take_back(last.uuid);
  if (state.shown) state.queue.unshift(state.shown.card);
  state.view = 'answer';
  show_views();
  show_card(last.card);
}

function take_back(id) {
  state.past = state.past.filter((p) => p.uuid !== id);
  state.outbox.add('/api/undo', {uuid: id});
  notice(TEXT.undone);
}

const as_card = (c) => ({query: c.query, kind: c.kind, template: c.template, members: c.answers.map((a) => a[0]),
    answers: c.answers, ticket: c.ticket});

document.addEventListener('visibilitychange', () => {
  if (!state.shown && !document.hidden) fetch_cards();
  if (!state.shown) return;
  if (document.hidden) state.shown.left = performance.now();
  else if (state.shown.left) state.shown.hidden += performance.now() - state.shown.left;
});

// --- unsent and refused answers ---

function say_waiting(count, how) {
  const text = {idle: '', sending: count > 2 ? TEXT.waiting(count) : '', offline: TEXT.offline(count),
      ended: TEXT.ended}[how];
  document.getElementById('waiting').textContent = text;
  document.body.dataset.waiting = count;
}
function refused(why) { notice(TEXT.refused(why)); }

// --- views ---

function show_views() {
  const names = state.owner ? ['answer', 'mine', 'board', 'review'] : ['answer', 'mine', 'board'];
  document.getElementById('views').replaceChildren(...names.map((name) =>
    h('button', {type: 'button', 'data-view': name, 'aria-current': name === state.view ? 'page' : null,
        onclick: () => open_view(name)}, TEXT.views[name])));
}

async function open_view(name) {
  state.view = name;
  show_views();
  if (name === 'answer') {
    if (state.shown) show_card(state.shown.card);
    else show_next();
    return;
  }
  await refresh_view();
  main.querySelector('h1')?.focus();
}

async function refresh_view() {
  const name = state.view;
  try {
    const found = name === 'mine' ? await get('/api/mine') : name === 'review' ? await get('/api/review')
        : await get('/api/standing');
    if (state.view !== name) return;
    if (name === 'mine') main.replaceChildren(my_answers(found.cards, change, (c) => {
      take_back(c.uuid);
      setTimeout(refresh_view, 400);
    }));
    else if (name === 'review') main.replaceChildren(review(found, settle));
    else show_standing(found);
  } catch (e) {
    notice(e.message || TEXT.offline(0));
  }
}

function change(past) {
  if (state.shown) state.queue.unshift(state.shown.card);
  state.view = 'answer';
  show_views();
  show_card({...as_card(past), replaces: past.uuid});
}

function settle(query, member, verdict) {
  state.outbox.add('/api/settle', {uuid: uuid(), query, member, answer: verdict});
  notice(TEXT.settled);
  setTimeout(refresh_view, 2500);
}

// The header and the dashboard show the same figures.
function show_standing(d) {
  document.getElementById('run').textContent = d.run;
  document.getElementById('known').textContent = d.known ? TEXT.known(number(d.known), number(d.answers)) : '';
  if (state.view === 'board') main.replaceChildren(dashboard(d, state.owner));
}

async function poll() {
  if (!document.hidden) {
    try {
      show_standing(await get('/api/standing'));
    } catch { /* shown elsewhere */ }
    if (state.shown && state.queue.length < 2) fetch_cards();
  }
  setTimeout(poll, state.view === 'board' || !state.shown ? POLL : SLOW_POLL);
}

// --- keys ---

function open_help(close, ...content) {
  const dialog = document.getElementById('help');
  dialog.replaceChildren(...content, h('p', {}, h('button', {type: 'button', onclick: () => dialog.close()}, close)));
  dialog.showModal();
}

const instructions = () => [h('h1', {tabindex: '-1', autofocus: true}, TEXT.instructions),
    h('p', {class: 'instructions'}, state.instructions)];

function help() {
  open_help(TEXT.close, ...(state.instructions ? instructions() : []),
      h('h1', {tabindex: '-1', autofocus: !state.instructions}, TEXT.help_title),
    h('div', {class: 'columns'}, TEXT.help.map(([title, rows]) =>
      h('section', {}, h('h2', {}, title), h('dl', {},
          rows.flatMap(([k, text]) => [h('dt', {}, key(k)), h('dd', {}, text)]))))));
}

// Shows the instructions once in this browser, and again when they have changed.
function greet() {
  if (!state.instructions || localStorage.getItem('pal-read') === state.instructions) return;
  localStorage.setItem('pal-read', state.instructions);
  open_help(TEXT.start, ...instructions());
  document.getElementById('help').addEventListener('close', () => {
    if (state.shown) state.shown.since = performance.now();
  }, {once: true});
}

let pointed = null;   // the picture that the pointer, the focus or a key chose last
for (const how of ['pointerover', 'focusin', 'chosen'])
  document.addEventListener(how, (e) => {
    pointed = e.target.closest?.('[data-sample]') ?? e.target.querySelector?.(':scope > [data-sample]') ?? null;
  });
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.isComposing || event.repeat
      || document.querySelector('dialog[open]')) return;
  const letter = event.key.toLowerCase();
  let used = true;
  if (event.key === '?') help();
  else if (event.key === 'Backspace') undo();
  else if (event.key === 'Escape' && state.view !== 'answer') open_view('answer');
  else if (letter === 'z') pointed?.isConnected ? enlarge(Number(pointed.dataset.sample))
      : state.shown && enlarge(state.shown.card.template);
  else if (letter === 'm') open_view('mine');
  else if (letter === 'p') open_view('board');
  else used = state.view === 'answer' && state.shown !== null && state.shown.made.press(event);
  if (used) event.preventDefault();
});
// Space acts on the card even when a button has the focus.
document.addEventListener('keyup', (event) => {
  if (event.key === ' ' && state.view === 'answer') event.preventDefault();
});

document.title = TEXT.title;
const keys = document.getElementById('keys');
keys.append(h('span', {class: 'word'}, TEXT.keys), '?');
keys.addEventListener('click', help);
main.append(h('p', {class: 'quiet'}, TEXT.loading));
fetch_cards();
poll();
