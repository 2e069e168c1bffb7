import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fetchPage } from '../../../../src/responses/tools/web/fetch-page.ts'
import { DEFAULT_TOOL_RIGHTS } from '../../../harness/tool-rights.ts'
import { type StandInWeb, startStandInWeb } from '../../../harness/web-tools/stand-in-web.ts'

let web: StandInWeb
beforeAll(async () => {
  web = await startStandInWeb()
})
afterAll(() => web.close())

/** A network that answers every address, and keeps them with what was sent. */
function networkWith(answer: (address: string) => Response) {
  const sent: Array<[address: string, init: RequestInit | undefined]> = []
  const fetch = async (address: string, init?: RequestInit) => {
    sent.push([address, init])
    return answer(address)
  }
  return { sent, publicNetwork: { fetch } as unknown as Fetcher }
}

const text = () => new Response('text', { headers: { 'content-type': 'text/plain' } })
const fetched = (address: string, publicNetwork: Fetcher) =>
  fetchPage(address, {
    ...{ allow: web.hosts, rules: DEFAULT_TOOL_RIGHTS.web, publicNetwork },
    signal: new AbortController().signal,
  })

describe('the network for pages', () => {
  it('gets every public address, with nothing but what all pages get', async () => {
    const { sent, publicNetwork } = networkWith((address) =>
      address.startsWith('https://a')
        ? new Response(null, {
            status: 302,
            headers: { location: 'http://b.example/x', 'set-cookie': 'a=b' },
          })
        : text(),
    )
    expect(await fetched('https://A.example', publicNetwork)).toMatchObject({ url: 'http://b.example/x' })
    expect(sent.map(([address]) => address)).toEqual(['https://a.example/', 'http://b.example/x'])
    for (const [, init] of sent) {
      expect(init).toMatchObject({ redirect: 'manual' })
      expect(init?.method ?? 'GET').toBe('GET')
      expect(Object.keys(init?.headers ?? {})).toEqual(['accept', 'user-agent'])
    }
  })

  it('gets the public target of a redirect from an address that the operator has listed, and not that address', async () => {
    const { sent, publicNetwork } = networkWith(text)
    await fetched(`http://${web.hosts[0]}/redirect?to=https%3A%2F%2Fa.example%2F`, publicNetwork)
    expect(sent.map(([address]) => address)).toEqual(['https://a.example/'])
  })
})
