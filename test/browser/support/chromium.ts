import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const PROGRAM = process.env.CHROMIUM ?? '/usr/bin/chromium'

/** No GPU and no sandbox, as containers need it, and no requests besides those of the page. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Whether there is a Chromium here: `CHROMIUM`, or Debian's. Reports on stderr if there is none. */
export function hasChromium(): boolean {
  if (existsSync(PROGRAM)) return true
  process.stderr.write(`SKIPPED: what runs in a browser (no ${PROGRAM}; CHROMIUM names another)\n`)
  return false
}

/** Starts a Chromium with a home and a profile of its own, which are removed when it is closed. */
export async function startChromium(): Promise<{ browser: Browser; close: () => Promise<void> }> {
  const home = mkdtempSync(join(tmpdir(), 'headgate-chromium-'))
  const remove = () => rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  try {
    const environment = { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: home }
    const browser = await chromium.launch({ executablePath: PROGRAM, args: FLAGS, env: environment })
    const close = async () => {
      await browser.close()
      remove()
    }
    return { browser, close }
  } catch (error) {
    remove()
    throw error
  }
}
