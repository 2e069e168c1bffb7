import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EgressRules } from '../../../../src/identity/tool-rights.ts'
import { PageStore } from '../../../../src/responses/tools/web/page-store.ts'
import {
  type BrowserBinding,
  LARGEST_IMAGE,
  requestPatterns,
  screenshotTool,
} from '../../../../src/responses/tools/web/screenshot-tool.ts'
import { webTools } from '../../../../src/responses/tools/web/web-tools.ts'
import { DEFAULT_TOOL_RIGHTS } from '../../../harness/tool-rights.ts'
import { type StandInWeb, startStandInWeb } from '../../../harness/web-tools/stand-in-web.ts'

let web: StandInWeb
beforeAll(async () => {
  web = await startStandInWeb()
})
afterAll(() => web.close())

/** A browser that answers as Browser Run does, and keeps what it was asked. */
function browserWith(answer: () => Response) {
  const asked: Array<Record<string, unknown>> = []
  const quickAction = async (action: string, options: object) => {
    asked.push({ action, ...options })
    return answer()
  }
  return { asked, browser: { quickAction } as unknown as BrowserBinding }
}

const image = () => new Response(Buffer.from([0xff, 0xd8]), { headers: { 'content-type': 'image/jpeg' } })

const shoot = (
  browser: BrowserBinding,
  path: string,
  rules: EgressRules = DEFAULT_TOOL_RIGHTS.web,
  signal = new AbortController().signal,
) =>
  screenshotTool(browser, { allow: web.hosts, publicNetwork: null }).run(
    {
      owner: { organizationId: 'org_1', userId: 'user_1' },
      workspaceId: 'conv_1',
      responseId: 'resp_1',
      callId: 'call_1',
      arguments: JSON.stringify({ url: path.startsWith('/') ? `http://${web.hosts[0]}${path}` : path }),
      rights: { ...DEFAULT_TOOL_RIGHTS, web: rules },
    },
    signal,
  )

/** An image that has begun and does not end, and whether it was cancelled. */
function endlessImage() {
  const state = { cancelled: false }
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    cancel: () => {
      state.cancelled = true
    },
  })
  return { state, response: new Response(body) }
}

const brokenImage = () =>
  new Response(new ReadableStream({ start: (controller) => controller.error(new Error('canary')) }))

describe('take_screenshot', () => {
  it('is offered where there is a browser only', () => {
    const configuration = {
      SEARCH_PROVIDER: 'local' as const,
      SEARCH_PRICE: 0,
      EGRESS_ALLOW: [],
      WEB_EGRESS_ALLOW: [],
    }
    const names = (browser: BrowserBinding | null) =>
      webTools({ configuration, publicNetwork: null, browser, pages: new PageStore(() => 0) }).map(
        ({ definition, family }) => `${family} ${definition.name}`,
      )
    const always = [
      'web_search web_search',
      'browser open_page',
      'browser find_in_page',
      'browser page_links',
    ]
    expect(names(null)).toEqual(always)
    expect(names(browserWith(image).browser)).toEqual([...always, 'browser take_screenshot'])
  })

  it('gives the browser the address after redirects, and returns the image', async () => {
    const { asked, browser } = browserWith(image)
    const result = await shoot(browser, '/chain/3')
    expect(asked).toMatchObject([{ action: 'screenshot', url: `http://${web.hosts[0]}/page`, cacheTTL: 0 }])
    expect(result).toEqual({
      status: 'completed',
      members: { output: [{ type: 'input_image', image_url: 'data:image/jpeg;base64,/9g=' }] },
    })
  })

  it.each(['http://169.254.169.254/', '/redirect?to=http%3A%2F%2F169.254.169.254%2F', 'http://localhost/'])(
    'does not show %s to the browser',
    async (address) => {
      const { asked, browser } = browserWith(image)
      expect(await shoot(browser, address)).toMatchObject({ status: 'failed' })
      expect(asked).toEqual([])
    },
  )

  it.each([
    [() => new Response('{"errors":["canary"]}', { status: 422 }), 'The browser answered with status 422.'],
    [() => new Response(Buffer.alloc(LARGEST_IMAGE + 1)), 'The image of the page is longer than 750 KB.'],
    [brokenImage, 'The browser did not send the whole image.'],
  ])('is a result for the model when the browser fails', async (answer, error) => {
    expect(await shoot(browserWith(answer).browser, '/page')).toEqual({
      status: 'failed',
      members: { error },
    })
  })
})

describe('the image of a page', () => {
  it('is a result within the limit of results when it is as long as it may be', async () => {
    const result = await shoot(browserWith(() => new Response(Buffer.alloc(LARGEST_IMAGE))).browser, '/page')
    expect(result.status).toBe('completed')
    expect(JSON.stringify(result.members).length).toBeLessThan(1024 * 1024)
  })

  it('is cancelled when the call ends while the browser works', async () => {
    const call = new AbortController()
    const { state, response } = endlessImage()
    const { browser } = browserWith(() => {
      call.abort(new Error('ended'))
      return response
    })
    await expect(shoot(browser, '/page', DEFAULT_TOOL_RIGHTS.web, call.signal)).rejects.toThrow('ended')
    expect(state.cancelled).toBe(true)
  })

  it('is cancelled when the call ends while it is read', async () => {
    const call = new AbortController()
    const { state, response } = endlessImage()
    const { asked, browser } = browserWith(() => response)
    const ended = expect(shoot(browser, '/page', DEFAULT_TOOL_RIGHTS.web, call.signal)).rejects.toThrow(
      'ended',
    )
    await expect.poll(() => asked.length === 1 && response.bodyUsed, { interval: 1 }).toBe(true)
    call.abort(new Error('ended'))
    await ended
    expect(state.cancelled).toBe(true)
  })
})

describe('the requests of a page in the browser', () => {
  const mayLoad = (rules: EgressRules, address: string) =>
    requestPatterns(rules).some((pattern) => new RegExp(pattern).test(address))

  it('are all allowed without rules', () => {
    expect(mayLoad(DEFAULT_TOOL_RIGHTS.web, 'https://a.example/x?y')).toBe(true)
    expect(mayLoad(DEFAULT_TOOL_RIGHTS.web, 'data:image/png;base64,AA')).toBe(true)
    expect(mayLoad(DEFAULT_TOOL_RIGHTS.web, 'https://a.xn--p1ai./x')).toBe(true)
    for (const address of [
      'ftp://a.example/',
      'http://169.254.169.254/',
      'http://[::1]/',
      'http://localhost/',
      'http://a.example:8080/',
    ]) {
      expect(mayLoad(DEFAULT_TOOL_RIGHTS.web, address), address).toBe(false)
    }
  })

  it('follow the rules of the organization', () => {
    const rules = { allow: ['*.a.example', 'b.example'], deny: ['no.a.example', '*.no.a.example'] }
    for (const host of ['x.a.example', 'x.y.a.example', 'b.example', 'b.example:443', 'b.example.']) {
      expect(mayLoad(rules, `https://${host}/`), host).toBe(true)
    }
    for (const host of [
      'a.example',
      'c.example',
      'no.a.example',
      'x.no.a.example',
      'no.a.example:443',
      'no.a.example.',
      'xb.example',
      'b.example.c.example',
      'b.example@c.example',
      'bxexample',
      'b.example:8443',
    ]) {
      expect(mayLoad(rules, `https://${host}/`), host).toBe(false)
    }
    expect(mayLoad({ allow: ['*'], deny: ['a.example'] }, 'https://a.example')).toBe(false)
    expect(mayLoad({ allow: ['*'], deny: ['a.example'] }, 'https://xa.example')).toBe(true)
    expect(mayLoad({ allow: [], deny: [] }, 'https://a.example/')).toBe(false)
  })
})
