import type { ButtonHTMLAttributes } from 'react'
import styles from './button.module.css'

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { look?: 'main' | 'plain' | 'danger' }

export function Button({ look, type = 'button', className, ...rest }: ButtonProps) {
  const classes = [styles.button, look && styles[look], className].filter(Boolean).join(' ')
  return <button type={type} className={classes} {...rest} />
}
