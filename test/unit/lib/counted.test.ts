import { expect, it } from 'vitest'
import { counted } from '../../../src/lib/counted.ts'

it.each([
  [0, '0 seconds'],
  [1, '1 second'],
  [2, '2 seconds'],
  [-1, '-1 seconds'],
])('%d is told as %s', (count, told) => {
  expect(counted(count, 'second')).toBe(told)
})
