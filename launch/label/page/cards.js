// cards: one question on the screen: a single picture with buttons, or a grid of tiles to mark.
//
// A card is {query, kind, template, members, examples, ticket, class?, node?, answers?, replaces?}. When it is filled
// in, done(verdicts) gets [[member, verdict]…]. A verdict means "the same as the template", so a tile marked in an
// outliers grid is a no.
import {TEXT} from '/texts.js';
import {enlarge, h, key, picture} from '/dom.js';

const TILE_KEYS = ['1', '2', '3', '4', '5', 'q', 'w', 'e', 'r', 't', 'a', 's', 'd', 'f', 'g'];
const MARKS = {marked: '✓', unsure: '?', broken: '✕'};
const LONG_PRESS = 500;   // milliseconds

// own: the user's question; '': the page's own for each kind.
export function make_card(card, done, undo, own) {
  return card.members.length === 1 ? new Single(card, done, undo, own) : new Grid(card, done, undo, own);
}

const filled = (text, card) => typeof text === 'function' ? text(card.node) : text;

function heading(card, kind, own) {
  const Q = TEXT.question;
  if (!own) return h('h1', {tabindex: '-1'}, filled(Q[kind], card));
  return [h('h1', {tabindex: '-1'}, own), Q.own[kind] ? h('p', {class: 'how'}, filled(Q.own[kind], card)) : null];
}

function template_side(card) {
  if (card.template < 0) return h('div', {class: 'side'});
  return h('div', {class: 'side'},
    h('div', {class: 'template'},
        h('p', {}, (card.kind === 'coarse' ? TEXT.template_coarse : TEXT.template)(card.class)),
        zoomable(card.template)),
    card.examples?.length ? h('div', {}, h('p', {}, TEXT.examples),
        h('div', {class: 'examples'}, card.examples.map((id) => zoomable(id)))) : null);
}

function zoomable(id) {
  const box = picture(id);
  box.addEventListener('click', () => enlarge(id));
  return box;
}

function action(name, letter, click, main = false) {
  return h('button', {type: 'button', class: main ? 'main' : '', onclick: click}, name, ' ', key(letter));
}

class Single {
  constructor(card, done, undo, own) {
    this.card = card;
    this.done = done;
    const coarse = card.kind === 'coarse';
    const kind = coarse ? 'coarse_one' : card.kind === 'outliers' ? 'outliers_one' : 'pair';
    const plain = coarse || own;   // yes and no, not same and different
    const say = (verdict) => () => this.say(verdict);
    this.element = h('section', {},
      heading(card, kind, own),
      h('div', {class: 'card pair'}, template_side(card),
        h('div', {class: 'side'}, h('div', {class: 'template other'},
            h('p', {}, own ? TEXT.candidate_own : TEXT.candidate), zoomable(card.members[0])))),
      h('div', {class: 'actions'},
        action(plain ? TEXT.say.yes_plain : TEXT.say.yes, 'Y', say('yes'), true),
        action(plain ? TEXT.say.no_plain : TEXT.say.no, 'N', say('no'), true),
        action(TEXT.say.unsure, 'U', say('unsure')), action(TEXT.say.skip, 'S', say('skip')),
        action(TEXT.say.broken, 'B', say('broken')),
        action(TEXT.say.undo, '⌫', undo)));
  }

  say(verdict) { this.done([[this.card.members[0], verdict]]); }

  press(event) {
    const verdict = {y: 'yes', n: 'no', u: 'unsure', s: 'skip', x: 'skip', b: 'broken'}[event.key.toLowerCase()];
    if (verdict) this.say(verdict);
    return verdict !== undefined;
  }
}

class Grid {
  constructor(card, done, undo, own) {
    this.card = card;
    this.done = done;
    this.marked_means = card.kind === 'outliers' ? 'no' : 'yes';
    this.tiles = card.members.map((id, n) => this.make_tile(id, n));
    for (const [member, verdict] of card.answers ?? []) this.set(card.members.indexOf(member), this.state_of(verdict));
    this.grid = h('div', {class: 'grid', role: 'group'}, this.tiles);
    this.grid.addEventListener('pointerdown', (e) => this.begin(e));
    this.grid.addEventListener('pointermove', (e) => this.paint(e));
    for (const end of ['pointerup', 'pointercancel', 'pointerleave']) this.grid.addEventListener(end, () => this.end());
    this.grid.addEventListener('contextmenu', (e) => e.preventDefault());
    this.element = h('section', {},
      heading(card, card.kind, own),
      h('div', {class: 'card'}, template_side(card), this.grid),
      h('div', {class: 'actions'},
        action(TEXT.say.done, 'Space', () => this.submit(), true),
        action(TEXT.say.all_unsure, 'U', () => this.all('unsure')),
        action(TEXT.say.skip, 'X', () => this.all('skip')), action(TEXT.say.undo, '⌫', undo)));
  }

  make_tile(id, n) {
    const tile = h('button', {type: 'button', class: 'tile', 'data-index': n},
      picture(id, {alt: '', broken: () => this.set(n, 'broken')}),
      TILE_KEYS[n] ? h('kbd', {class: 'key', 'aria-hidden': 'true'}, TILE_KEYS[n].toUpperCase()) : null,
      h('span', {class: 'mark', 'aria-hidden': 'true'}));
    tile.addEventListener('dblclick', () => enlarge(id));
    // A click without a pointer: Enter, or a screen reader.
    tile.addEventListener('click', (e) => { if (e.detail === 0) this.toggle(n, 'marked'); });
    this.describe(tile, n, 'plain');
    return tile;
  }

  describe(tile, n, state) {
    tile.dataset.state = state;
    tile.setAttribute('aria-pressed', String(state === 'marked'));
    tile.setAttribute('aria-label', TEXT.tile(n + 1, TEXT.state[state]));
    tile.querySelector('.mark').textContent = MARKS[state] ?? '';
  }

  set(n, state) { if (this.tiles[n]) this.describe(this.tiles[n], n, state); }
  toggle(n, state) { this.set(n, this.tiles[n].dataset.state === state ? 'plain' : state); }
  state_of(verdict) {
    return verdict === this.marked_means ? 'marked' : verdict === 'unsure' || verdict === 'broken' ? verdict : 'plain';
  }

  begin(event) {
    const tile = event.target.closest('.tile');
    if (!tile || event.button > 0) return;
    const wanted = event.shiftKey ? 'unsure' : event.altKey ? 'broken' : 'marked';
    this.painting = tile.dataset.state === wanted ? 'plain' : wanted;
    this.first = tile;
    const before = tile.dataset.state;
    this.set(Number(tile.dataset.index), this.painting);
    tile.releasePointerCapture?.(event.pointerId);
    if (event.pointerType === 'touch') {
      this.pressing = setTimeout(() => {
        this.set(Number(tile.dataset.index), before);
        this.end();
        enlarge(this.card.members[Number(tile.dataset.index)]);
      }, LONG_PRESS);
    }
  }

  paint(event) {
    if (!this.painting) return;
    const tile = document.elementFromPoint(event.clientX, event.clientY)?.closest('.tile');
    if (!tile || tile === this.first || !this.grid.contains(tile)) return;
    clearTimeout(this.pressing);
    this.set(Number(tile.dataset.index), this.painting);
  }

  end() {
    this.painting = this.first = null;
    clearTimeout(this.pressing);
  }

  submit() {
    const other = this.marked_means === 'yes' ? 'no' : 'yes';
    const verdict = {marked: this.marked_means, plain: other, unsure: 'unsure', broken: 'broken'};
    this.done(this.card.members.map((id, n) => [id, verdict[this.tiles[n].dataset.state]]));
  }

  all(verdict) {
    this.done(this.card.members.map((id, n) => [id, this.tiles[n].dataset.state === 'broken' ? 'broken' : verdict]));
  }

  press(event) {
    const letter = event.key.toLowerCase();
    const digit = /^Digit([1-5])$/.exec(event.code);   // with Shift, event.key is another character
    const at = TILE_KEYS.indexOf(digit ? digit[1] : letter);
    if (at >= 0 && at < this.tiles.length) {
      this.toggle(at, event.shiftKey ? 'unsure' : event.altKey ? 'broken' : 'marked');
      this.tiles[at].dispatchEvent(new CustomEvent('chosen', {bubbles: true}));
    }
    else if (letter === ' ') this.submit();
    else if (letter === 'u') this.all('unsure');
    else if (letter === 'x') this.all('skip');
    else return false;
    return true;
  }
}
