import { expect, it } from 'vitest'
import { cutOutput } from '../../../src/workspace/shell/cut-output.ts'

it('leaves an output that fits', () => {
  for (const text of ['', 'abc', 'ü'.repeat(50)]) expect(cutOutput(text, 100)).toBe(text)
})

it.each(['a', 'ü', '€', '🙂'])(
  'cuts at characters (%s), keeps both ends and counts what it removed',
  (character) => {
    const text = `begin${character.repeat(1_000)}end`
    for (let limit = 100; limit < 108; limit++) {
      const cut = cutOutput(text, limit)
      const [, head = '', count, tail = ''] =
        /^([\s\S]*)\n\[… (\d+) bytes cut …\]\n([\s\S]*)$/.exec(cut) ?? []
      expect(text.startsWith(head) && text.endsWith(tail)).toBe(true)
      const bytes = (part: string) => Buffer.byteLength(part)
      expect(bytes(head) + bytes(tail) + Number(count)).toBe(bytes(text))
      expect(bytes(head) + bytes(tail)).toBeLessThanOrEqual(limit + 3)
    }
  },
)
