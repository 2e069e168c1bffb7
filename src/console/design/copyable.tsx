import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import styles from './copyable.module.css'
import { Hidden } from './hidden.tsx'
import { TEXT } from './text.ts'

/** A text in a fixed-width face with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div>
      <pre className={styles.sample}>{text}</pre>
      <CopyButton text={text} of={label}>
        {TEXT.copy}
      </CopyButton>
    </div>
  )
}

/** A button that copies a text, and says that it has. @param of what is copied, where the text of the button does not say it. */
export function CopyButton({ text, of, children }: { text: string; of?: string; children: ReactNode }) {
  const [copied, setCopied] = useState<string | null>(null)
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text))
  const shown = copied === text ? TEXT.copied : children
  return (
    <Button look="plain" onClick={copy}>
      {shown}
      {of && <Hidden>: {of}</Hidden>}
    </Button>
  )
}
