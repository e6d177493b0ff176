// Compares the page's look with approved pictures: goldens_test.mjs CACHE PAGE [write].
//
// The test compares three things of every section: the places of its parts and drawings; its picture in few large cells, in which letters
// become grey; and the lines and colours that the browser computes for each kind of element, because a border is invisible in such cells.
// So another Chromium with other fonts or edges passes, but a part that is missing, moved, recoloured or without its border fails. The
// repository holds the pictures at a tenth of their size, and the rest as JSON; `write` makes all of it anew.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';
import { check, done, note } from './native.mjs';

const [cache, page, mode] = process.argv.slice(2);
const goldens = join(dirname(fileURLToPath(import.meta.url)), 'goldens');
const views = [[1600, 'light'], [1600, 'dark'], [360, 'light'], [360, 'dark']];
const scale = 10; // pixels of the page per pixel of a golden
const cell = 40; // pixels of the page per compared cell
const kMostColour = 26; // of 255: the allowed error of a cell's mean; a lost line of text is 30 and more
const kMostCells = 0.03; // the part of a section's cells that may exceed it
const kMostAcross = 6, kMostDown = 24; // pixels: tolerances of place and width, and of height; again as much per 400

const { browser, open, settled } = await launch(cache, page, 'chromium');
const desk = await browser.newPage();

/** A picture's cells as mean colours, r g b each, after scaling to `width` and `height`; `part`: [top, height], by default all. */
const looked = (url, width, height, across, down, part) => desk.evaluate(async (url, width, height, across, down, part) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const [top, tall] = part ?? [0, image.height];
  const pen = new OffscreenCanvas(width, height).getContext('2d');
  pen.drawImage(image, 0, top, image.width, tall, 0, 0, width, height);
  const { data } = pen.getImageData(0, 0, width, height);
  const cells = new Array(across * down * 3).fill(0), counts = new Array(across * down).fill(0);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const at = Math.floor((y * down) / height) * across + Math.floor((x * across) / width);
      ++counts[at];
      for (let c = 0; c < 3; ++c) cells[at * 3 + c] += data[(y * width + x) * 4 + c];
    }
  }
  return cells.map((sum, i) => Math.round(sum / counts[Math.floor(i / 3)]));
}, url, width, height, across, down, part);

/** Pictures one below the other, scaled down. */
const stacked = (urls, scale) => desk.evaluate(async (urls, scale) => {
  const images = await Promise.all(urls.map(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    return image;
  }));
  const heights = images.map((image) => Math.round(image.height / scale));
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(images[0].width / scale);
  canvas.height = heights.reduce((a, b) => a + b, 0);
  const pen = canvas.getContext('2d');
  pen.imageSmoothingQuality = 'high';
  let y = 0;
  const parts = images.map((image, i) => {
    pen.drawImage(image, 0, y, canvas.width, heights[i]);
    y += heights[i];
    return [y - heights[i], heights[i]];
  });
  return { url: canvas.toDataURL('image/jpeg', 0.6), parts };
}, urls, scale);

for (const [width, scheme] of views) {
  const name = `${width}-${scheme}`;
  const tab = await open('#?player.k=2', { width, scheme });
  await settled(tab);
  await tab.addStyleTag({ content: '.top { position: static !important; } *, *::before { caret-color: transparent !important; }' });
  await tab.$eval('#race .transport input[type=range]', (slider) => {
    slider.value = '400';
    slider.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await new Promise((wait) => setTimeout(wait, 500));
  const boxes = await tab.$$eval('main > section', (all) => Object.fromEntries(all.map((section) => {
    const at = section.getBoundingClientRect();
    return [section.id, [section, ...section.querySelectorAll(':scope > *, svg, canvas, .parts, .bars')].map((one) => {
      const box = one.getBoundingClientRect();
      return [one.localName + (one.classList.length > 0 ? '.' + one.classList[0] : ''), ...[box.left - at.left, box.top - at.top, box.width, box.height].map(Math.round)];
    })];
  })));
  // The looks of each kind of element, which do not depend on fonts.
  const looks = await tab.$$eval('main > section', (all) => Object.fromEntries(all.map((section) => {
    const found = {};
    for (const one of section.querySelectorAll('*')) {
      if (!one.checkVisibility()) continue;
      const style = getComputedStyle(one), drawn = one instanceof SVGElement;
      const borders = ['Top', 'Right', 'Bottom', 'Left'].map((side) => `${style[`border${side}Width`]} ${style[`border${side}Style`]} ${style[`border${side}Color`]}`).map((text) => (text.startsWith('0px') ? '' : text));
      const look = [
        ['border', new Set(borders).size === 1 ? borders[0] : borders.join(', ')], ['radius', style.borderRadius], ['shadow', style.boxShadow], ['ink', style.color],
        ['paper', style.backgroundColor], ...(drawn ? [['line', `${style.stroke} ${style.strokeWidth} ${style.strokeDasharray}`], ['fill', style.fill], ['opacity', style.opacity]] : []),
      ].filter(([, value]) => !['', '0px', 'none', 'rgba(0, 0, 0, 0)', 'none 1px none'].includes(value)).map((pair) => pair.join(' ')).join('; ');
      (found[[one.localName, ...one.classList].join('.')] ??= new Set()).add(look);
    }
    return [section.id, Object.fromEntries(Object.entries(found).sort().map(([kind, of]) => [kind, [...of].sort()]))];
  })));
  const pictures = {};
  for (const id of Object.keys(boxes)) pictures[id] = 'data:image/png;base64,' + await (await tab.$('#' + id)).screenshot({ encoding: 'base64' });
  await tab.close();
  const picture = join(goldens, name + '.jpg'), layout = join(goldens, name + '.json');
  if (mode === 'write') {
    mkdirSync(goldens, { recursive: true });
    const { url, parts } = await stacked(Object.values(pictures), scale);
    writeFileSync(picture, Buffer.from(url.split(',')[1], 'base64'));
    const rows = Object.entries(boxes).map(([id, of], i) => `  ${JSON.stringify(id)}: ${JSON.stringify({ picture: parts[i], boxes: of, looks: looks[id] })}`);
    writeFileSync(layout, `{\n${rows.join(',\n')}\n}\n`);
    continue;
  }
  if (!existsSync(layout)) {
    check(`there is a golden at ${name}`, false);
    continue;
  }
  const golden = JSON.parse(readFileSync(layout, 'utf8')), url = 'data:image/jpeg;base64,' + readFileSync(picture).toString('base64');
  check(`the sections are those of the golden at ${name}`, JSON.stringify(Object.keys(golden)) === JSON.stringify(Object.keys(boxes)), Object.keys(boxes).join(' '));
  let worst = 0;
  for (const id of Object.keys(golden).filter((each) => boxes[each])) {
    const moved = golden[id].boxes.flatMap((box, i) => {
      const here = boxes[id][i];
      if (here?.[0] !== box[0]) return [[box, here]];
      const [x, y, w, h] = [1, 2, 3, 4].map((k) => Math.abs(here[k] - box[k]));
      const down = kMostDown * (1 + (box[2] + box[4]) / 400);
      return x > kMostAcross || w > kMostAcross || y > down || h > down ? [[box, here]] : [];
    });
    check(`${id} stands where it did at ${name}`, moved.length === 0 && boxes[id].length === golden[id].boxes.length, JSON.stringify(moved));
    const kinds = new Set([...Object.keys(golden[id].looks), ...Object.keys(looks[id])]);
    const others = [...kinds].filter((kind) => JSON.stringify(golden[id].looks[kind]) !== JSON.stringify(looks[id][kind]));
    check(`${id} has the lines and colours that it had at ${name}`, others.length === 0, JSON.stringify(others.map((kind) => [kind, golden[id].looks[kind], looks[id][kind]])));
    // A slightly taller or shorter section has as many cells, each slightly taller or shorter.
    const [, , , wide, tall] = golden[id].boxes[0], across = Math.round(wide / cell), down = Math.max(1, Math.round(tall / cell));
    const then = await looked(url, wide, tall, across, down, golden[id].picture), now = await looked(pictures[id], wide, tall, across, down);
    let off = 0;
    for (let i = 0; i < then.length; i += 3) {
      const difference = Math.max(...[0, 1, 2].map((c) => Math.abs(then[i + c] - now[i + c])));
      worst = Math.max(worst, difference);
      off += difference > kMostColour ? 1 : 0;
    }
    const part = off / (across * down);
    check(`${id} looks as it did at ${name}`, part <= kMostCells, `${off} of ${across * down} cells are of another colour`);
  }
  note(`at ${name} the cell furthest off is off by ${worst} of 255`);
}
await browser.close();
done();
