import { constants } from 'node:os'
import { text } from 'node:stream/consumers'
import type { Terminal } from './run-program.ts'

/** The terminal of this process. Ctrl-C ends it, except where a command runs until then. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr } = process
  const interruption = new AbortController()
  let shown = false
  const clear = () => {
    if (shown) stderr.write('\r\u001b[K')
    shown = false
  }
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader has left, as `head` does: end as a program that the signal ends.
    if (error.code === 'EPIPE') process.exit(128 + constants.signals.SIGPIPE)
    throw error
  })
  return {
    environment: process.env,
    readInput: () => text(stdin),
    print: (line) => {
      clear()
      stdout.write(`${line}\n`)
    },
    complain: (line) => {
      clear()
      stderr.write(`${line}\n`)
    },
    ...(stdin.isTTY && stderr.isTTY && { ask: askPerson }),
    ...(stderr.isTTY && {
      progress: (line: string) => {
        stderr.write(`\r\u001b[K${line.slice(0, (stderr.columns ?? 80) - 1)}`)
        shown = true
      },
    }),
    get interrupted() {
      process.once('SIGINT', () => interruption.abort())
      process.once('SIGTERM', () => interruption.abort())
      return interruption.signal
    },
  }
}

const [CTRL_C, CTRL_D, BACKSPACE, DELETE] = ['\u0003', '\u0004', '\b', '\u007f']

/** Reads a line from the terminal. Hidden: without showing what is typed, nor how much. */
function askPerson(question: string, mode: 'shown' | 'hidden'): Promise<string> {
  const { stdin, stderr } = process
  stderr.write(question)
  if (mode === 'hidden') stdin.setRawMode(true)
  stdin.setEncoding('utf8').resume()
  return new Promise((resolve) => {
    let typed = ''
    const end = () => {
      if (mode === 'hidden') {
        stdin.setRawMode(false)
        stderr.write('\n')
      }
      stdin.off('data', read).pause()
      resolve(typed.trim())
    }
    const read = (characters: string) => {
      for (const character of characters) {
        if (character === '\n' || character === '\r' || character === CTRL_D) return end()
        if (character === CTRL_C) {
          end()
          process.exit(130)
        }
        typed = character === BACKSPACE || character === DELETE ? typed.slice(0, -1) : typed + character
      }
    }
    stdin.on('data', read)
  })
}
