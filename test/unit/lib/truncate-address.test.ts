import { describe, expect, it } from 'vitest'
import { parseAddress, truncateAddress } from '../../../src/lib/truncate-address.ts'

describe('truncateAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.0'],
    ['203.0.113.0', '203.0.113.0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::'],
    ['2001:DB8:ffff::1', '2001:db8:ffff::'],
    ['::ffff:203.0.113.7', '203.0.113.0'],
    ['::1', '::'],
  ])('makes the network of %s', (text, network) => {
    const networkOf = (of: string) => {
      const address = parseAddress(of)
      return address && truncateAddress(address)
    }
    expect(networkOf(text)).toBe(network)
    expect(networkOf(network)).toBe(network)
  })

  it.each(['', 'unknown', '203.0.113.256', '203.0.113.7, 203.0.113.8', '::1::', ':', '1:2'])(
    'takes %j for no address',
    (text) => expect(parseAddress(text)).toBeNull(),
  )
})
