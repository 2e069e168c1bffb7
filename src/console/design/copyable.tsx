import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import styles from './copyable.module.css'
import { TEXT } from './text.ts'

/** A text in a fixed-width face with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div>
      <pre className={styles.sample}>{text}</pre>
      <CopyButton text={text} label={label}>
        {TEXT.copy}
      </CopyButton>
    </div>
  )
}

/** A button that copies a text, and says that it has. */
export function CopyButton({ text, label, children }: { text: string; label: string; children: ReactNode }) {
  const [copied, setCopied] = useState<string | null>(null)
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text))
  return (
    <Button look="plain" onClick={copy} aria-label={`${TEXT.copy}: ${label}`}>
      {copied === text ? TEXT.copied : children}
    </Button>
  )
}
