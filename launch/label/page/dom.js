// dom: elements as expressions, pictures by number. Text is only ever set as text, never as markup.
import {TEXT} from '/texts.js';

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.className = value;
    else if (value !== undefined && value !== null && value !== false)
      element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

export const key = (name) => h('kbd', {}, name);
export const number = (n) => Math.round(n).toLocaleString('en');

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

let pictures = true;   // false: the run has none, samples are shown by their numbers
export function show_pictures(yes) { pictures = yes; }
const kept = new Map();   // images that were requested before, decoded

export function preload(id) {
  if (!pictures || kept.has(id)) return;
  const img = new Image();
  img.src = `/image/${id}`;
  img.decode?.().catch(() => {});
  kept.set(id, img);
  if (kept.size > 200) kept.delete(kept.keys().next().value);
}

const RETRY = 2000;   // milliseconds
// Finds out why an image failed: an img element gives no reason.
const status_of = (src) => fetch(src, {method: 'HEAD', credentials: 'same-origin'}).then((r) => r.status, () => 0);

// broken(): called when the stored bytes are not a picture. A missing picture is shown by its number. After a lost
// connection the picture is requested again.
export function picture(id, {alt = TEXT.picture(id), full = false, broken = null} = {}) {
  const box = h('span', {class: 'pic', 'data-sample': id});
  const numbered = (text) => box.replaceChildren(h('span', {class: 'number', role: 'img', 'aria-label': alt}, text));
  if (!pictures) {
    numbered(`#${id}`);
    return box;
  }
  const img = h('img', {src: full ? `/image/${id}/full` : `/image/${id}`, alt, draggable: 'false', decoding: 'sync'});
  const size = () => img.classList.toggle('tiny', img.naturalWidth > 0 && img.naturalWidth < 100);
  img.addEventListener('load', size);
  img.addEventListener('error', async () => {
    const status = await status_of(img.src);
    if (status === 404) numbered(`#${id}`);
    else if (status === 422) {
      numbered(TEXT.broken_image);
      broken?.();
    } else {
      setTimeout(() => { if (box.isConnected) img.src = img.src; }, RETRY);
    }
  });
  if (img.complete) size();
  box.append(img);
  return box;
}

export function enlarge(id) {
  const dialog = document.getElementById('large');
  dialog.replaceChildren(picture(id, {full: true}),
      h('button', {type: 'button', onclick: () => dialog.close()}, TEXT.close));
  dialog.showModal();
}

let fading = 0;
export function notice(text) {
  const box = document.getElementById('notice');
  box.textContent = text;
  box.classList.add('shown');
  clearTimeout(fading);
  fading = setTimeout(() => box.classList.remove('shown'), 3500);
}
