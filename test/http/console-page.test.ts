import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf, send } from '../harness/send.ts'

const get = (path: string, base = gateway().baseUrl) => send(base + path)

/** Addresses of the files that the page loads. */
async function loadedFiles(): Promise<string[]> {
  const { text } = await get('/console')
  return [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, address]) => String(address))
}

describe('the console', () => {
  it.each(['/console', '/console/', '/console/setup', '/console/acme/settings/api'])(
    '%s is its page, with a policy that lets nothing in from elsewhere',
    async (path) => {
      const { status, headers, text } = await get(path)
      expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      expect(text).toContain('<div id="console">')
      expect(text).not.toMatch(/https?:|<script>|<style|\sstyle=|\son\w+=/)
      expect(headers).toMatchObject({
        'cache-control': 'no-cache',
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'strict-transport-security': 'max-age=31536000',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      })
      const policy = String(headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';")
      expect(policy).toContain("require-trusted-types-for 'script'; trusted-types 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
    },
  )

  it('loads files that never change under their names', async () => {
    const files = await loadedFiles()
    expect(files.length).toBeGreaterThanOrEqual(2)
    for (const file of files) {
      const { status, headers } = await get(file)
      expect([file, status]).toEqual([file, 200])
      expect(headers['content-type']).toMatch(/^text\/(javascript|css)/)
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
    }
  })

  it('serves its fonts with their type', async () => {
    const sheets = (await loadedFiles()).filter((file) => file.endsWith('.css'))
    const styles = (await Promise.all(sheets.map((sheet) => get(sheet)))).map(({ text }) => text).join('')
    const [, font] = /url\(["']?([^)"']+\.woff2)/.exec(styles) ?? []
    const { status, headers } = await get(String(font))
    expect([status, headers['content-type']]).toEqual([200, 'font/woff2'])
  })

  it('has no other files', async () => {
    for (const path of ['/console/assets/none.js', '/console/assets/..%2findex.html']) {
      expect([path, (await get(path)).status]).toEqual([path, 404])
    }
  })

  it('leaves unknown paths elsewhere as JSON', async () => {
    for (const path of ['/api/none', '/consoles']) {
      const answer = await get(path)
      expect([path, answer.headers['content-type']]).toEqual([path, 'application/json'])
      expect(answer.status).toBeGreaterThanOrEqual(401)
      expect(typeof jsonOf(answer)).toBe('object')
    }
  })

  it('is not on the host of models', async () => {
    const [file = ''] = await loadedFiles()
    for (const path of ['/console', '/console/sign-in', file]) {
      expect([path, (await get(path, gateway().llmUrl)).status]).toEqual([path, 404])
    }
  })
})
