// Opens the page, from a file, in a browser of Debian. In Firefox, WebDriver BiDi cannot switch from light to dark.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Starts a browser. `cache` has npm's packages; `which` is chromium or firefox; without `script`, JavaScript is off. */
export async function launch(cache, page, which, { script = true } = {}) {
  const chromium = which === 'chromium';
  const require = createRequire(join(resolve(cache), 'package.json'));
  const { default: puppeteer } = await import(pathToFileURL(require.resolve('puppeteer-core')).href);
  const browser = await puppeteer.launch(chromium
    ? { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--force-device-scale-factor=1', '--hide-scrollbars'] }
    : { browser: 'firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', extraPrefsFirefox: { 'ui.prefersReducedMotion': 1, 'javascript.enabled': script } });
  const address = pathToFileURL(resolve(page)).href;

  /** Opens a tab with the race and the player. Its `asked` are requests, its `wrong` the errors of the console. */
  async function open(hash = '', { width = 1600, scheme = 'light', motion = 'reduce' } = {}) {
    const tab = await browser.newPage();
    tab.asked = [];
    tab.wrong = [];
    tab.on('request', (request) => tab.asked.push(request.url()));
    tab.on('pageerror', (error) => tab.wrong.push(String(error)));
    tab.on('console', (message) => message.type() === 'error' && tab.wrong.push(message.text()));
    await tab.setViewport({ width, height: 900 });
    if (chromium) {
      await tab.setJavaScriptEnabled(script);
      await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: motion }]);
    }
    await tab.goto(address + hash);
    if (script) {
      await tab.waitForSelector('[data-ready]', { timeout: 60000 });
      await tab.waitForFunction(() => document.querySelector('#instructor, #handout') ||
        (document.querySelectorAll('#race [data-fact]').length + document.querySelectorAll('#race .error').length > 2 && document.querySelector('#player .proof, #player .error')), { timeout: 60000 });
    }
    return tab;
  }
  /** Waits until every section has its first answers. */
  const settled = (tab) => tab.waitForFunction(() =>
    document.querySelectorAll('#primitives .card').length === 7 && document.querySelectorAll('#cost .curve').length > 7 && document.querySelector('#cost .rows') && document.querySelector('#break .chip') &&
    document.querySelector('#planner td') && document.querySelector('#papers .claims .card') && document.querySelector('#papers .drawings svg') && document.querySelector('#tasks .proof') && document.querySelector('#timeline canvas'), { timeout: 60000 });
  return { browser, open, settled, require };
}

export const texts = (tab, selector) => tab.$$eval(selector, (found) => found.map((one) => one.textContent.trim()));
