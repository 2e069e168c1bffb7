import { describe, expect, it } from 'vitest'
import {
  countRejectedCall,
  ledgerClient,
  parseLedgerName,
  rejectedCallsName,
} from '../../../src/governance/ledger/client.ts'

const organizationId = '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f'

/** A namespace whose stubs fail with the given errors, one call each, and then answer. */
function namespaceFailingWith(...errors: unknown[]) {
  const names: string[] = []
  let countedWith: unknown[] = []
  const namespace = {
    getByName(name: string) {
      names.push(name)
      const answer = async () => {
        if (errors.length > 0) throw errors.shift()
        return { balance: 1, reserved: 0, available: 1 }
      }
      return {
        balance: answer,
        countRejected: async (...parameters: unknown[]) => {
          countedWith = parameters
          return answer()
        },
      }
    },
  } as unknown as DurableObjectNamespace
  return { namespace, names, counted: () => countedWith }
}

describe('ledgerClient', () => {
  it('finds the object by organization and shard', async () => {
    const { namespace, names } = namespaceFailingWith()
    expect((await ledgerClient(namespace, organizationId).balance()).balance).toBe(1)
    expect(names).toEqual([`${organizationId}:0`])
    expect(parseLedgerName(names[0])).toEqual({ organizationId, shard: 0 })
  })

  it('repeats a call once, on a fresh stub, when its object went away', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'))
    expect((await ledgerClient(namespace, organizationId).balance()).balance).toBe(1)
    expect(names).toHaveLength(2)
  })

  it('gives up after the second failure', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'), new Error('reset again'), 'unused')
    await expect(ledgerClient(namespace, organizationId).balance()).rejects.toThrow('reset again')
    expect(names).toHaveLength(2)
  })

  it.each([{ overloaded: true }, { overloaded: true, retryable: true }, { remote: true }])(
    'does not repeat a call that failed with %o',
    async (properties) => {
      const { namespace, names } = namespaceFailingWith(Object.assign(new Error('final'), properties))
      await expect(ledgerClient(namespace, organizationId).balance()).rejects.toThrow('final')
      expect(names).toHaveLength(1)
    },
  )

  it('repeats what the object threw when the runtime says that it may be', async () => {
    const error = Object.assign(new Error('moved'), { remote: true, retryable: true })
    const { namespace, names } = namespaceFailingWith(error)
    await ledgerClient(namespace, organizationId).balance()
    expect(names).toHaveLength(2)
  })
})

describe('parseLedgerName', () => {
  it.each([undefined, '', organizationId, `${organizationId}:`, `${organizationId}:x`, 'unauthenticated:3'])(
    'refuses %s',
    (name) => {
      expect(() => parseLedgerName(name)).toThrow('name of a ledger')
    },
  )
})

describe('countRejectedCall', () => {
  it('counts an address in one of eight objects, under the first millisecond of the minute', async () => {
    const { namespace, names, counted } = namespaceFailingWith()
    await countRejectedCall(namespace, { ip: '192.0.2.1', at: 1_763_721_059_999, surface: 'mcp' })
    expect(names).toEqual([rejectedCallsName('192.0.2.1')])
    expect(counted()).toEqual(['192.0.2.1', 1_763_721_000_000, 'mcp'])
    const objects = new Set(Array.from({ length: 500 }, (_, index) => rejectedCallsName(`192.0.2.${index}`)))
    expect([...objects].sort()).toEqual(Array.from({ length: 8 }, (_, index) => `unauthenticated:${index}`))
  })

  it('is not repeated, since the count may have been stored', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'))
    const call = { ip: '192.0.2.1', at: 0, surface: 'mcp' }
    await expect(countRejectedCall(namespace, call)).rejects.toThrow('reset')
    expect(names).toHaveLength(1)
  })
})
