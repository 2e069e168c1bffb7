import { describe, expect, it } from 'vitest'
import { truncateAddress } from '../../../src/lib/truncate-address.ts'

describe('truncateAddress', () => {
  it.each([
    ['203.0.113.7', '203.0.113.0'],
    ['203.0.113.0', '203.0.113.0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::'],
    ['2001:DB8:ffff::1', '2001:db8:ffff::'],
    ['::ffff:203.0.113.7', '203.0.113.0'],
    ['::1', '::'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('makes the network of %s', (address, network) => {
    expect(truncateAddress(address)).toBe(network)
    expect(truncateAddress(network)).toBe(network)
  })
})
