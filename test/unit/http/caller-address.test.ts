import { Hono } from 'hono'
import ipaddr from 'ipaddr.js'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Deps } from '../../../src/deps.ts'
import { callerAddress, storedAddress } from '../../../src/http/caller-address.ts'
import type { AppEnv } from '../../../src/http/context.ts'

/** What reads a text, by every function of the library. It is not in its types. */
const KINDS = [ipaddr.IPv4, ipaddr.IPv6] as unknown as Array<{ parser(text: string): unknown }>

afterEach(() => void vi.restoreAllMocks())

/** What a request from an address has as its addresses, each of which is read twice. */
async function addressesOf(header: string | null, whole = false) {
  const app = new Hono<AppEnv>().get('/', (context) => {
    context.set('deps', { configuration: { STORE_FULL_ADDRESSES: whole } } as Deps)
    const read = () => [callerAddress(context), storedAddress(context)]
    return context.json([...read(), ...read()])
  })
  const answer = await app.request('/', { headers: header === null ? {} : { 'cf-connecting-ip': header } })
  return answer.json()
}

describe('the address of a caller', () => {
  it.each([
    ['203.0.113.7', '203.0.113.0'],
    ['2001:db8:1:2::9', '2001:db8:1::'],
    ['nonsense', null],
    [null, null],
  ])('%s is stored as %s, and parsed once a request', async (header, stored) => {
    const parsers = KINDS.map((kind) => vi.spyOn(kind, 'parser'))
    const address = stored === null ? null : header
    expect(await addressesOf(header)).toEqual([address, stored, address, stored])
    const parsed = parsers.reduce((sum, { mock }) => sum + mock.calls.length, 0)
    expect(parsed).toBe(header === null ? 0 : 1)
  })

  it('is stored whole where the deployment says so', async () => {
    const address = '203.0.113.7'
    expect(await addressesOf(address, true)).toEqual(Array(4).fill(address))
  })
})
