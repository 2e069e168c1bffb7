import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { redocScript } from '../../scripts/copy-assets.ts'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'

const PAGES = ['/docs/api', '/docs/api/management']
const FILES: Array<[file: string, type: string]> = [
  ['redoc.js', 'text/javascript'],
  ['reference.js', 'text/javascript'],
  ['reference.css', 'text/css'],
]

const get = (path: string) => send(gateway().baseUrl + path)

describe('the reference of the APIs', () => {
  it.each(PAGES)('%s needs no key, and lets nothing be loaded from elsewhere', async (path) => {
    const { status, headers } = await get(path)
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).not.toMatch(/unsafe|https?:|\*/)
    expect(headers).toMatchObject({
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    })
  })

  it.each(PAGES)('%s names no other host, and has no script in itself', async (path) => {
    const { text } = await get(path)
    expect(text).not.toMatch(/https?:|\/\/\w|<script>|<style|\son\w+=/)
    const loaded = [...text.matchAll(/(?:src|rel="stylesheet" href)="([^"]+)"/g)].map(
      ([, address]) => address,
    )
    expect(loaded).toHaveLength(3)
    for (const address of loaded) expect((await get(String(address))).status).toBe(200)
  })

  it.each(FILES)('has the file %s', async (file, type) => {
    const { status, headers } = await get(`/docs/api/${file}`)
    expect([status, headers['content-type'], headers.etag]).toEqual([200, type, expect.stringMatching(/^"/)])
  })

  it('has the Redoc of its package, without the picture that it would load from its maker', async () => {
    const { text } = await get('/docs/api/redoc.js')
    expect(text).toBe(redocScript())
    expect(text).not.toContain('cdn.redoc')
    expect(text).toContain('MIT')
  })

  it('has no other file of its folder', async () => {
    for (const file of ['public.html', 'management.html', 'redoc.js.LICENSE.txt', '']) {
      expect([file, (await get(`/docs/api/${file}`)).status]).toEqual([file, file === '' ? 200 : 404])
    }
  })

  it('does not hold Redoc in the repository', () => {
    const ignored = readFileSync(join(import.meta.dirname, '../../.gitignore'), 'utf8').split('\n')
    expect(ignored).toContain('public/docs/api/redoc.js')
  })
})
