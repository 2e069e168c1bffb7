import { describe, expect, it } from 'vitest'
import { applyHunks } from '../../../src/workspace/patch/apply-hunks.ts'
import { patchSteps } from '../../../src/workspace/patch/apply-patch.ts'
import { type FilePatch, parsePatch } from '../../../src/workspace/patch/parse-patch.ts'

const patchOf = (...lines: string[]): string => ['*** Begin Patch', ...lines, '*** End Patch'].join('\n')

/** Applies the hunks of an update. */
function updated(text: string, ...lines: string[]): string {
  const [file] = parsePatch(patchOf('*** Update File: f', ...lines))
  return applyHunks(text, (file as Extract<FilePatch, { kind: 'update' }>).hunks, 'f', patchSteps())
}

describe('a patch', () => {
  it('has additions, deletions, updates and moves', () => {
    const patch = patchOf(
      '*** Add File: a',
      '+1',
      '+',
      '*** Delete File: b',
      '*** Update File: c',
      '*** Move to: d',
      '@@ top',
      ' x',
      '-y',
      '+z',
    )
    expect(parsePatch(`\n${patch}\n`)).toEqual([
      { kind: 'add', path: 'a', content: '1\n\n' },
      { kind: 'delete', path: 'b' },
      {
        ...{ kind: 'update', path: 'c', moveTo: 'd' },
        hunks: [{ anchors: ['top'], before: ['x', 'y'], after: ['x', 'z'], atEnd: false }],
      },
    ])
  })

  it.each([
    ['no patch', 'line 1: the first line must be "*** Begin Patch"'],
    ['*** Begin Patch\n*** Add File: a\n+x', 'the last line must be "*** End Patch"'],
    [patchOf(), 'the patch has no file'],
    [patchOf('hello'), 'must be "*** Add File: "'],
    [patchOf('*** Add File: a', 'x'), 'line 3: each line of an added file must begin with "+"'],
    [patchOf('*** Update File: a'), 'the update of a has no change'],
    [patchOf('*** Update File: a', '@@'), 'the hunk has no line'],
    [patchOf('*** Update File: a', '@@', '*x'), 'must begin with "+", "-", a space or "@@"'],
    [patchOf('*** Delete File: '), 'the path is missing'],
  ])('that is malformed names the line: %j', (text, message) => {
    expect(() => parsePatch(text)).toThrow(message)
  })
})

describe('hunks', () => {
  const text = 'a\n  b\nc\na\n  b\nd\n'

  it('replace their lines, each after the one before it', () => {
    expect(updated(text, '@@', ' a', '-  b', '+B', '@@', ' a', '-  b', '+BB')).toBe('a\nB\nc\na\nBB\nd\n')
  })

  it('are looked for after their anchor', () => {
    expect(updated(text, '@@ c', ' a', '-  b', '+B')).toBe('a\n  b\nc\na\nB\nd\n')
    expect(() => updated(text, '@@ nowhere', '-a')).toThrow('f, hunk 1: there is no line "nowhere"')
  })

  it('fit despite other spaces at the ends of lines', () => {
    expect(updated('a \n\tb\n', '@@', '-a', '-b', '+x')).toBe('x\n')
  })

  it('are appended without context, and stand at the end of the file where they say so', () => {
    expect(updated('a\n', '@@', '+b')).toBe('a\nb\n')
    expect(updated('', '@@', '+b')).toBe('b\n')
    expect(updated(text, '@@', '-a', '-  b', '-d', '+e', '*** End of File')).toBe('a\n  b\nc\ne\n')
    expect(updated('a', '@@', '-a', '+b')).toBe('b')
    expect(updated('a\n', '@@', '-a')).toBe('')
  })

  it('that do not fit are refused', () => {
    expect(() => updated(text, '@@', ' a', '-x')).toThrow(
      /hunk 1: the file does not have these lines.*"a\\nx"/,
    )
  })
})
